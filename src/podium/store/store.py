"""Opens the store of runs and observations."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from podium.store.address import label_of, read_address
from podium.store.candidates import Candidates
from podium.store.checkpoints import Checkpoints
from podium.store.closing import Closing
from podium.store.engine import BUSY_S, open_engine, surest
from podium.store.observations import Observations
from podium.store.runs import Runs
from podium.store.schema import prepare


@dataclass(frozen=True, slots=True)
class Store(Closing):
    """Keeps runs, observations and what belongs to them.

    Threads may share one; every process opens its own.
    """

    engine: Engine

    @property
    def label(self) -> str:
        """Names the store in messages, without its password."""
        return label_of(self.engine.url)

    @property
    def runs(self) -> Runs:
        """Returns the table of runs."""
        return Runs(self.engine)

    @property
    def candidates(self) -> Candidates:
        """Returns the table of candidates."""
        return Candidates(self.engine)

    @property
    def observations(self) -> Observations:
        """Returns the table of observations."""
        return Observations(surest(self.engine))

    @property
    def checkpoints(self) -> Checkpoints:
        """Returns the table of checkpoints."""
        return Checkpoints(self.engine)

    def close(self) -> None:
        """Closes all connections."""
        self.engine.dispose()


def open_store(url: str, limit_s: float = BUSY_S) -> Store:
    """Opens a store; one that is not there is created.

    Args:
        url: `sqlite:///FILE`, `postgresql://USER@HOST/DATABASE`, or the path of a SQLite file.
        limit_s: how long a writer waits for others.

    Raises:
        UsageError: the address cannot be used, or the store has another schema.
        MissingError: the database cannot be reached, or its driver is not installed.
        InputError: the file is something else.
    """
    engine = open_engine(read_address(url), limit_s)
    try:
        prepare(engine)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine)
