"""Finds the API server and the credentials: a kubeconfig, or the service account of a pod."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podium.errors import InputError, MissingError, PodiumError, UnknownName, UsageError
from podium.files.excerpt import excerpt
from podium.files.text_file import reading
from podium.files.yaml_tree import parse_yaml
from podium.kube.extra import need_extra

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PLUGIN_S = 120.0
"""Time for a plugin to give credentials; somebody may have to log in meanwhile."""

RENEWAL_S = 2.0
"""Credentials are not read again sooner: many watches find out at once that they are refused."""

_MOST_BYTES = 16 << 20
_DEFAULT = Path("~/.kube/config")
_CHOOSE = "give --kubeconfig FILE, or set KUBECONFIG"


@dataclass(frozen=True, slots=True)
class Target:
    """Says which cluster is meant: files of a kubeconfig and a context, or the pod's own."""

    kubeconfig: Path | None = None
    context: str | None = None


class Access:
    """Holds the address of an API server, and credentials that it can read again."""

    def __init__(self, target: Target, environ: Mapping[str, str] = os.environ) -> None:
        need_extra()
        from kubernetes_asyncio.client import Configuration

        self._context = target.context
        self._configuration: Any = Configuration()
        self._files = _files(target, environ)
        self._renewing = asyncio.Lock()
        self._renewed_s = float("-inf")  # when credentials were last read again, or could not be
        self._problem: PodiumError | None = None  # why they could not
        self._version: object = None  # of the files that were read
        self.generation = 0  # counts how often credentials were read
        self.trust: ssl.SSLContext | None = None  # whom to trust; None where there is no TLS
        self.label = f"context {target.context}" if target.context else "the current context"
        if self._files is None:
            self.label = "the service account of this pod"

    @property
    def url(self) -> str:
        """Gives the address of the API server."""
        return _url(self._configuration)

    @property
    def proxy(self) -> str | None:
        """Gives the proxy through which the API server is reached, if any."""
        proxy: str | None = self._configuration.proxy
        return proxy

    @property
    def server_name(self) -> str | None:
        """Gives the name for which the server's certificate is checked, where it is another."""
        name: str | None = self._configuration.tls_server_name
        return name

    @property
    def is_outdated(self) -> bool:
        """Tells whether the kubeconfig or a certificate was replaced since it was read."""
        return self._version != _version(self._files, self._configuration)

    async def renew(self, generation: int) -> None:
        """Reads credentials again that were refused, unless somebody has just done so.

        Raises:
            PodiumError: they cannot be read now; those that were refused stay.
        """
        async with self._renewing:
            if self.generation != generation:
                return
            if time.monotonic() - self._renewed_s >= RENEWAL_S:
                await self._read_again()
            if self._problem is not None:
                raise self._problem

    async def _read_again(self) -> None:
        try:
            await self.load()
            self._problem = None
        except PodiumError as error:
            self._problem = error
        finally:
            self._renewed_s = time.monotonic()

    async def load(self) -> None:
        """Reads the credentials: files may have changed, and plugins give new ones.

        They take the place of earlier ones as a whole or not at all.
        """
        from kubernetes_asyncio import config
        from kubernetes_asyncio.client import Configuration

        configuration = Configuration()
        async with self._explaining():
            if self._files is None:
                config.load_incluster_config(client_configuration=configuration)
            else:
                await self._load_kubeconfig(self._files, configuration)
        self._check_address(_url(configuration))
        await self._token(configuration)
        self.trust = self._trust(configuration)
        self._configuration = configuration
        self._version = _version(self._files, configuration)
        self.generation += 1

    @asynccontextmanager
    async def _explaining(self) -> AsyncIterator[None]:
        """Says in plain words what is wrong with the kubeconfig, and waits for no plugin for ever.

        Whatever it is that the library cannot read, a person wrote it.
        """
        where = self._files or str(SERVICE_ACCOUNT)
        try:
            async with asyncio.timeout(PLUGIN_S):
                yield
        except PodiumError:
            raise
        except TimeoutError as error:
            raise MissingError(
                f"the credentials of the kubeconfig did not come within {PLUGIN_S:g} s",
                where=where, hint="run the command under exec: by hand, or log in again",
            ) from error  # fmt: skip
        except OSError as error:
            raise InputError(
                f"the kubeconfig names a file that cannot be read: {error.strerror or error}",
                where=str(error.filename or self._files),
            ) from error
        except Exception as error:
            raise InputError(
                f"the kubeconfig cannot be used: {excerpt(str(error) or repr(error), 500, '')}",
                where=where, hint="`kubectl config view` shows what it says",
            ) from error  # fmt: skip

    def _check_address(self, url: str) -> None:
        where = self._files or str(SERVICE_ACCOUNT)
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and bool(parts.hostname)
            is_address = is_address and parts.port != 0
        except ValueError:
            is_address = False
        if not is_address:
            problem = "the server of the kubeconfig is no address"
            raise InputError(problem, where=where, hint="write it as https://HOST:PORT")
        if "@" in parts.netloc:
            problem = "the server of the kubeconfig has a password in its address"
            raise InputError(problem, where=where, hint="write credentials under users")

    async def _load_kubeconfig(self, files: str, configuration: Any) -> None:
        from kubernetes_asyncio import config

        contexts = _contexts(files)
        context = self._context
        logging.getLogger(config.kube_config.__name__).disabled = True  # it raises the same
        if context is not None and context not in contexts:
            raise UnknownName.among("context", context, contexts, where=files)
        # The user's file is never written to.
        loader = await config.load_kube_config(
            config_file=files,
            context=context,
            client_configuration=configuration,
            persist_config=False,
        )
        # Who makes another context the current one meanwhile does not mean this process.
        self._context = str(loader.current_context["name"])

    async def headers(self) -> dict[str, str]:
        """Gives the headers that show who asks."""
        token = await self._token(self._configuration)
        return {"Authorization": token} if token else {}

    async def _token(self, configuration: Any) -> str:
        async with self._explaining():
            token = await configuration.get_api_key_with_prefix("BearerToken") or ""
            if not token.strip().isprintable() or token.strip() == "Bearer":
                raise ValueError("its token is empty, or no token")
        return str(token.strip())

    def _trust(self, configuration: Any) -> ssl.SSLContext | None:
        """Decides whom to trust, and shows a client certificate."""
        if not _url(configuration).startswith("https://"):
            return None
        try:
            context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
            if configuration.cert_file:
                context.load_cert_chain(configuration.cert_file, configuration.key_file)
        except (ssl.SSLError, OSError) as error:
            raise InputError(
                f"a certificate of the kubeconfig cannot be used: {error}",
                where=self._files or str(SERVICE_ACCOUNT),
            ) from error
        if not configuration.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _url(configuration: Any) -> str:
    return str(configuration.host).rstrip("/")


def _version(files: str | None, configuration: Any) -> object:
    """Tells apart what the files hold now from what they held before."""
    certificates = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    versions = []
    for name in [*(files or "").split(os.pathsep), *filter(None, certificates)]:
        with suppress(OSError):
            found = Path(name).expanduser().stat()
            versions.append((name, found.st_mtime_ns, found.st_ino, found.st_size))
    return versions


def _files(target: Target, environ: Mapping[str, str]) -> str | None:
    """Lists the files of the kubeconfig as KUBECONFIG does; None: the pod's service account."""
    if target.kubeconfig is not None:
        if not target.kubeconfig.is_file():
            raise MissingError("there is no such kubeconfig", where=str(target.kubeconfig))
        return str(target.kubeconfig)
    named = [part for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    there = [part for part in named if Path(part).expanduser().is_file()]
    if named and not there:
        raise MissingError(
            "there is no such kubeconfig", where=f"KUBECONFIG={os.pathsep.join(named)}",
            hint="give --kubeconfig FILE",
        )  # fmt: skip
    default = _DEFAULT.expanduser()
    if there or default.is_file():
        return os.pathsep.join(there) or str(default)
    if environ.get("KUBERNETES_SERVICE_HOST") and (SERVICE_ACCOUNT / "token").is_file():
        if target.context is not None:
            raise UsageError("a pod without a kubeconfig has no contexts", hint=_CHOOSE)
        return None
    raise MissingError(
        "no cluster is configured", where=f"{_DEFAULT} is not there, and this is no pod of one",
        hint=_CHOOSE,
    )  # fmt: skip


def _contexts(files: str) -> list[str]:
    from kubernetes_asyncio.config.kube_config import KubeConfigMerger

    for name in files.split(os.pathsep):
        _check(Path(name).expanduser())
    try:
        merged: Any = KubeConfigMerger(files).config
        value = getattr(merged, "value", None)
        listed = value.get("contexts") if isinstance(value, dict) else None
        names = [str(each["name"]) for each in listed] if isinstance(listed, list) else []
    except (AttributeError, KeyError, TypeError) as error:
        raise _no_kubeconfig(files) from error
    except Exception as error:
        raise InputError(f"it is no kubeconfig: {_first_line(error)}", where=files) from error
    if not names:
        raise InputError(
            "the kubeconfig has no contexts", where=files, hint="`kubectl config get-contexts`"
        )
    return names


def _check(path: Path) -> None:
    """Reads a file within bounds: of a few lines YAML can make more than fits the memory."""
    try:
        with reading(path, most_bytes=_MOST_BYTES) as stream:
            kinds = [document.kind for document in parse_yaml(stream, path)]
    except InputError as error:
        raise InputError(f"it is no kubeconfig: {error.message}", where=error.where) from error
    if set(kinds) != {"mapping"}:
        raise _no_kubeconfig(str(path))


def _no_kubeconfig(where: str) -> InputError:
    problem = "it is no kubeconfig: a file with clusters, users and contexts is expected"
    return InputError(problem, where=where, hint="`kubectl config view` shows one")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
