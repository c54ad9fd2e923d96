"""Asks the API server of a cluster, and says in plain words what it refuses."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from podium.errors import MissingError, PodiumError
from podium.kube.access import Access

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

    from podium.kube.objects import Status

CONNECT_S = 10.0
CREATE_SILENCE_S = 10.0
LIST_SILENCE_S = 60.0
"""A list of which nothing comes for so long is given up."""

REPLY_S = 300.0
"""A whole reply that takes longer is given up, however steadily it comes."""

LARGEST_REPLY = 1 << 31
"""Bytes of a list that is asked for all at once, decompressed."""

LARGEST_PAGE = 1 << 28
"""Bytes of any other reply: half a megabyte for each object of a page."""

MOST_PAGES = 4000
"""Pages of one list: two million objects."""

_MOST_SAID = 4096
_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _GONE = 401, 403, 404, 410

_ANONYMOUS = '"system:anonymous"'
"""The name of whoever sends no credentials, in the words of the API server."""

_NOT_ONE = "check that this address is the API server of a cluster"

Query = Mapping[str, str]


class KubeError(MissingError):
    """The API server cannot be asked, cannot be reached, or refuses to answer: now, at least."""

    def __init__(
        self, message: str, *, where: str = "", hint: str = "", status: int = 0, wait_s: float = 0.0
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.status = status  # of HTTP, 0: there was no answer
        self.wait_s = wait_s  # that the server asks for

    @property
    def is_absent(self) -> bool:
        """Tells whether the server does not know such objects."""
        return self.status == _NOT_FOUND

    @property
    def is_forbidden(self) -> bool:
        """Tells whether somebody else would be answered."""
        return self.status == _FORBIDDEN

    @property
    def is_final(self) -> bool:
        """Tells whether asking again would be answered the same."""
        return self.status in (_UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND)

    @property
    def is_gone(self) -> bool:
        """Tells whether the version that was asked for is too old."""
        return self.status == _GONE


class KubeClient:
    """Sends requests of one process to one API server."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._session: ClientSession | None = None

    async def __aenter__(self) -> KubeClient:
        import aiohttp

        await self._access.load()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), trust_env=True, read_bufsize=1 << 18
        )
        return self

    async def __aexit__(self, *exit_: object) -> None:
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # connections that were dropped end in the next turn

    @property
    def url(self) -> str:
        """Gives the address of the API server."""
        return self._access.url

    async def get(self, path: str, query: Query | None = None) -> bytes:
        """Asks for one whole answer."""
        query = query or {}
        is_page = "limit" in query or not path.startswith(("/api/", "/apis/"))
        async with self.stream(path, query, LIST_SILENCE_S) as response:
            return await self._read(response, LARGEST_PAGE if is_page else LARGEST_REPLY)

    async def post(self, path: str, body: bytes) -> bytes:
        """Creates an object, and gives the whole answer."""
        async with self.stream(path, {}, CREATE_SILENCE_S, body) as response:
            return await self._read(response, LARGEST_PAGE)

    async def _read(self, response: ClientResponse, most_bytes: int) -> bytes:
        """Reads a whole answer within bounds: what is compressed may be a thousand times larger."""
        chunks, size = list[bytes](), 0
        async with asyncio.timeout(REPLY_S):
            async for chunk in response.content.iter_any():
                chunks.append(chunk)
                size += len(chunk)
                if size > most_bytes:
                    text = f"the cluster's answer is larger than {most_bytes:,} bytes"
                    raise KubeError(text, where=f"{self.url}{response.url.path}", hint=_NOT_ONE)
        return b"".join(chunks)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Query, silence_s: float, body: bytes | None = None
    ) -> AsyncIterator[ClientResponse]:
        """Opens an answer that comes bit by bit.

        Raises:
            KubeError: the server does not answer, breaks off, or refuses.
        """
        import aiohttp

        try:
            response = await self._asked(path, query, silence_s, body)
            try:
                yield response
            finally:
                _drop(response)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._unreachable(error) from error

    async def _asked(
        self, path: str, query: Query, silence_s: float, body: bytes | None
    ) -> ClientResponse:
        import aiohttp

        generation = self._access.generation
        try:
            return await self._answered(path, query, silence_s, body)
        except (KubeError, aiohttp.ClientConnectionError) as error:
            if not self._is_of_credentials(error):
                raise
            with _passing(status=error.status if isinstance(error, KubeError) else 0):
                await self._access.renew(generation)
            if body is not None and not isinstance(error, KubeError):
                raise  # it may have arrived
        return await self._answered(path, query, silence_s, body)

    def _is_of_credentials(self, error: BaseException) -> bool:
        """Tells whether a failure may end with what the kubeconfig says by now.

        A token may have expired, a certificate been replaced, or the server moved. While it is
        merely away, no plugin is asked.
        """
        if isinstance(error, KubeError):
            is_nobody = error.is_forbidden and _ANONYMOUS in error.message
            return error.status == _UNAUTHORIZED or is_nobody
        return isinstance(error, ssl.SSLError) or self._access.is_outdated

    async def _answered(
        self, path: str, query: Query, silence_s: float, body: bytes | None
    ) -> ClientResponse:
        response = await self._sent(path, query, silence_s, body)
        if response.status >= 400:
            try:
                verb = _verb(query) if body is None else "create"
                raise await self._refusal(response, path, verb)
            finally:
                _drop(response)
        return response

    async def _sent(
        self, path: str, query: Query, silence_s: float, body: bytes | None
    ) -> ClientResponse:
        import aiohttp

        if self._session is None:
            raise RuntimeError("the client is not open")
        with _passing():
            headers = {"Accept": "application/json", **await self._access.headers()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        timeout = aiohttp.ClientTimeout(
            total=None, connect=None, sock_connect=CONNECT_S, sock_read=silence_s
        )
        return await self._session.request(
            "GET" if body is None else "POST",
            f"{self.url}{path}",
            data=body,
            params=query,
            headers=headers,
            timeout=timeout,
            proxy=self._access.proxy,
            ssl=True if self._access.trust is None else self._access.trust,
            server_hostname=self._access.server_name,
            allow_redirects=False,
        )

    async def _refusal(self, response: ClientResponse, path: str, verb: str) -> KubeError:
        said = await _said(response)
        status = response.status
        message = said.message or response.reason or ""
        what = f"{verb} {path.rpartition('/')[2]}"
        if status == _UNAUTHORIZED:
            return KubeError(
                "the cluster does not accept the credentials", where=f"{self.url}, {self._label}",
                hint="log in again; `kubectl auth whoami` asks the same", status=status,
            )  # fmt: skip
        if status == _FORBIDDEN:
            return KubeError(
                f"you may not {what}: {message}", where=f"{self.url}, {self._label}",
                hint=f"allow it with a ClusterRole: {_rule(path, verb)}", status=status,
            )  # fmt: skip
        wait_s = _seconds(response.headers.get("Retry-After", ""))
        text = f"the cluster answers {status} to {what}: {message}"
        return KubeError(text, where=self.url, status=status, wait_s=wait_s)

    @property
    def _label(self) -> str:
        return self._access.label

    def _unreachable(self, error: BaseException) -> KubeError:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY" in str(error):
            return KubeError(
                f"the certificate of the cluster is not trusted: {_words(error)}", where=self.url,
                hint="the kubeconfig names its certificate-authority",
            )  # fmt: skip
        return KubeError(
            f"the cluster does not answer: {_words(error)}", where=f"{self.url}, {self._label}",
            hint="check that it runs, and that --context is the one you mean",
        )  # fmt: skip


class Pages:
    """Asks for the pages of a list one by one, and gives up where they have no end."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pages = 0
        self._last = ""

    def after(self, query: Query, token: str) -> dict[str, str]:
        """Gives the query for the page that a token stands for."""
        self._pages += 1
        if token == self._last or self._pages >= MOST_PAGES:
            text = f"a list of the cluster has no end: it goes on after {self._pages:,} pages"
            raise KubeError(text, where=self._url, hint=_NOT_ONE)
        self._last = token
        return {**query, "continue": token}


@contextmanager
def _passing(status: int = 0) -> Iterator[None]:
    """Takes what is wrong with credentials for a failure to ask: they may soon be good again."""
    try:
        yield
    except PodiumError as error:
        raise KubeError(
            f"the credentials cannot be read: {error.message}", where=error.where, hint=error.hint,
            status=status,
        ) from error  # fmt: skip


def _drop(response: ClientResponse) -> None:
    """Ends an answer; where more of it would come, the connection ends with it, at once."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _said(response: ClientResponse) -> Status:
    """Reads the Status object of a refusal; a proxy may answer with something else."""
    import msgspec

    from podium.kube.objects import Status, status_decoder

    body = await response.content.read(_MOST_SAID)
    try:
        return status_decoder.decode(body)
    except msgspec.DecodeError:
        return Status()


def _verb(query: Query) -> str:
    return "watch" if query.get("watch") else "list"


def _rule(path: str, verb: str) -> str:
    parts = path.strip("/").split("/")
    if len(parts) < (4 if parts[0] == "apis" else 3):  # what kinds there are, or which version
        return f'nonResourceURLs: ["{path}"], verbs: ["get"]'
    group = parts[1] if parts[0] == "apis" else ""
    # A path that ends in a subresource names its object before it.
    name = "/".join(parts[-3::2]) if verb == "create" else parts[-1]
    verbs = '"create"' if verb == "create" else '"get", "list", "watch"'
    return f'apiGroups: ["{group}"], resources: ["{name}"], verbs: [{verbs}]'


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0.0


def _words(error: BaseException) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "it takes too long"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
