"""Answers as an API server might that a real one cannot be made to be: in halves, in garbage."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Answer:
    """Is a reply in pieces: bytes are sent, numbers are seconds to wait."""

    pieces: Sequence[bytes | float] = ()
    status: int = 200
    is_cut: bool = False  # the connection breaks off after the last piece
    headers: dict[str, str] = field(default_factory=dict)


def listed(*objects: Any, version: str = "1", more: str = "") -> Answer:
    """Answers with a list."""
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return Answer([json.dumps({"metadata": metadata, "items": objects}).encode()])


def event(type_: str, value: Any, version: str = "") -> bytes:
    """Writes one line of a watch."""
    if version:
        value = {**value, "metadata": {**value["metadata"], "resourceVersion": version}}
    return json.dumps({"type": type_, "object": value}).encode() + b"\n"


def status(code: int, message: str = "no") -> Answer:
    """Answers with a refusal."""
    body = {"kind": "Status", "status": "Failure", "message": message, "code": code}
    return Answer([json.dumps(body).encode()], code)


class FakeApi:
    """Answers each request with the next answer; the last one is given again."""

    def __init__(self) -> None:
        self.lists: list[Answer] = [listed()]
        self.list_of: dict[str, Answer] = {}  # by the last part of a path: given every time
        self.watches: list[Answer] = [Answer([30.0])]
        self.asked: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.credentials: list[str] = []
        self.accepts: str | None = None  # the only credentials that are answered; None: any
        self.port = 0
        self.writers: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while line := await reader.readline():
                sent = ""
                while header := (await reader.readline()).decode().strip():
                    name, _, value = header.partition(": ")
                    if name.lower() == "authorization":
                        sent = value
                        self.credentials.append(value)
                is_known = self.accepts in (None, sent)
                answer = None if is_known else status(401, "Unauthorized")
                await self._answer(line.split()[1].decode(), writer, answer)
        writer.transport.abort()

    async def _answer(
        self, target: str, writer: asyncio.StreamWriter, answer: Answer | None
    ) -> None:
        answer = answer or self._next(target)
        headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
        head = "".join(f"{k}: {v}\r\n" for k, v in {**headers, **answer.headers}.items())
        writer.write(f"HTTP/1.1 {answer.status} X\r\n{head}\r\n".encode())
        for piece in answer.pieces:
            if isinstance(piece, float):
                await writer.drain()
                await asyncio.sleep(piece)
            else:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if answer.is_cut:
            await writer.drain()
            writer.transport.abort()
            raise ConnectionResetError
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    def _next(self, target: str) -> Answer:
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        kind = "watch" if "watch" in query else "list"
        self.asked[kind].append(query)
        answers = self.watches if kind == "watch" else self.lists
        if kind == "list" and (known := self.list_of.get(url.path.rpartition("/")[2])):
            answers = [known]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def cut(self) -> None:
        """Breaks all connections at once."""
        for writer in self.writers:
            writer.transport.abort()


@asynccontextmanager
async def fake_api(port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeApi]:
    """Runs a server for as long as the block."""
    api = FakeApi()
    server = await asyncio.start_server(api.serve, "127.0.0.1", port, ssl=tls)
    api.port = server.sockets[0].getsockname()[1]
    try:
        yield api
    finally:
        server.close()
        api.cut()
        await asyncio.sleep(0.01)


def kubeconfig(folder: Path, port: int) -> Path:
    """Writes a kubeconfig for a server without TLS."""
    config = {
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "me", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me"}}],
        "current-context": "fake",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file
