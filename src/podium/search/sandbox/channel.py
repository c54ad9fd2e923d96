"""Carries JSON messages over pipes, each with its length in front.

Nothing that a worker sends is ever executed or unpickled.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from typing import Any

LONGEST = 1 << 20
HEAD = struct.Struct(">I")
_CHUNK = 1 << 16


class ChannelClosed(Exception):  # noqa: N818 - reads as the sentence it makes
    """The other side has closed the channel."""


class ChannelTimeout(Exception):  # noqa: N818 - reads as the sentence it makes
    """No message arrived before the deadline."""


class ChannelGarbled(Exception):  # noqa: N818 - reads as the sentence it makes
    """The received bytes are not a message."""


class Channel:
    """Sends and receives messages on two file descriptors."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._read = b""
        self._held_back = b""

    @property
    def pipes(self) -> tuple[int, int]:
        """Returns the file descriptors, to read from and to write to."""
        return self._reading, self._writing

    def put(self, message: dict[str, Any]) -> None:
        """Takes a message that may wait for the next one that is sent.

        To write to a pipe wakes the other side up, which costs more than a small simulation.
        """
        body = json.dumps(message, allow_nan=False).encode()
        self._held_back += HEAD.pack(len(body)) + body

    def send(self, message: dict[str, Any]) -> None:
        """Sends one message, after those that are still queued."""
        self.put(message)
        rest, self._held_back = memoryview(self._held_back), b""
        try:
            while rest:
                rest = rest[os.write(self._writing, rest) :]
        except OSError as error:
            raise ChannelClosed from error

    def receive(self, deadline: float | None = None) -> dict[str, Any]:
        """Receives one message; a deadline is a time of the monotonic clock.

        Whoever comes too early may come again: what has arrived of a message is kept.
        """
        self._await(HEAD.size, deadline)
        (length,) = HEAD.unpack_from(self._read)
        if length > LONGEST:
            raise ChannelGarbled(f"a message of {length:,} bytes")
        end = HEAD.size + length
        self._await(end, deadline)
        body, self._read = self._read[HEAD.size : end], self._read[end:]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ChannelGarbled("a message that is not JSON") from error
        if not isinstance(message, dict):
            raise ChannelGarbled("a message that is not an object")
        return message

    def _await(self, count: int, deadline: float | None) -> None:
        """Reads until so many bytes are there."""
        while len(self._read) < count:
            if deadline is not None:
                left = deadline - time.monotonic()
                # Who never stops talking is late too.
                if left < 0 or not select.select([self._reading], [], [], left)[0]:
                    raise ChannelTimeout
            part = os.read(self._reading, max(_CHUNK, count - len(self._read)))
            if not part:
                raise ChannelClosed
            self._read += part
