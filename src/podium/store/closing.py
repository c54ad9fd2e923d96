"""Closes what is used in a `with` block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Makes a class with `close` usable in a `with` block."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Ends the work and frees what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
