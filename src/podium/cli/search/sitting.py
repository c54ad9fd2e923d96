"""Works on a run for one sitting: shows it, and writes down how it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from podium.cli.render import Screen, print_json
from podium.cli.search.display import follow, show_end, warn_of_walls

if TYPE_CHECKING:
    from podium.search.run.plan import Budget
    from podium.search.run.setup import Means
    from podium.store import RunRecord, Store


def work(
    screen: Screen, kept: Store, record: RunRecord, how: tuple[Means, Budget], is_json: bool
) -> None:
    """Searches until the budget is spent, then tells what came of it."""
    from podium.cli.watch import announce_compilation
    from podium.search.run.setup import open_search

    means, budget = how
    announce_compilation(screen)
    with (
        follow(screen, budget) as watch,
        open_search(kept, record, means, watch) as search,
        settled(screen, kept, record),
    ):
        search.get_ready()
        warn_of_walls(screen, search.missing_walls)
        screen.note(f"run {record.id} in {record.folder}")
        search.go(budget)
        summary = search.progress().summary()
    if is_json:
        print_json({"run": record.id, "ending": search.ending, "folder": record.folder, **summary})
    else:
        show_end(screen, record.id, search)


@contextmanager
def settled(screen: Screen, kept: Store, record: RunRecord) -> Iterator[None]:
    """Writes down how a sitting ended."""
    from podium.store.records import FAILED, FINISHED, INTERRUPTED, RUNNING

    kept.runs.update(record.id, status=RUNNING)
    try:
        yield
    except KeyboardInterrupt:
        kept.runs.update(record.id, status=INTERRUPTED)
        screen.note(f"stopped; podium search resume {record.id} continues")
        raise
    except BaseException:
        kept.runs.update(record.id, status=FAILED)
        raise
    kept.runs.update(record.id, status=FINISHED)
