"""Finds the service that a run talks to, and the key that opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import urlsplit

from podium.errors import MissingError, UsageError
from podium.settings import MASK, Secrets, hidden, known_secrets, without_password

OWN_KEY = "PODIUM_LLM_KEY"
OPENROUTER_KEY = "OPENROUTER_API_KEY"
OPENAI_KEY = "OPENAI_API_KEY"
KEY_VARIABLES = (OWN_KEY, OPENROUTER_KEY, OPENAI_KEY)
"""Variables that may hold a key, the first that suits the service wins."""

OPENAI_URL_VARIABLE = "OPENAI_BASE_URL"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
OPENAI_URL = "https://api.openai.com/v1"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Secret:
    """A key that is not printed, copied, pickled or compared by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def __repr__(self) -> str:
        return MASK if self._value else "no key"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __deepcopy__(self, _memo: Any) -> Secret:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is never stored")

    def reveal(self) -> str:
        """Returns the key, for the one place that sends it."""
        return self._value

    def scrubbed(self, text: str) -> str:
        """Removes the key from a text that came from outside, however it is encoded there."""
        return Secrets(frozenset([self._value] if self._value else [])).hide_known(text)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Names a service and holds its key."""

    url: str = field(repr=False)
    key: Secret = field(default_factory=Secret, repr=False)
    others: tuple[str, ...] = field(default=(), repr=False)  # secrets among the parameters

    @property
    def label(self) -> str:
        """Names the service in messages, without its password."""
        return without_password(self.url)

    def scrubbed(self, text: str) -> str:
        """Removes keys and the URL's password from a text that came from outside."""
        return known_secrets({}, [self.url], [self.key.reveal(), *self.others]).hide_known(text)


def find_endpoint(environ: Mapping[str, str], url: str = "") -> Endpoint:
    """Finds the service and its key; without a URL, the service whose key is set.

    A key goes to the service it was made for and to no other: only `PODIUM_LLM_KEY` is sent
    wherever the URL points. A service on this machine needs none.

    Raises:
        MissingError: no key suits the service.
    """
    known = {name: value.strip() for name, value in environ.items() if value.strip()}
    chosen = url or _usual_url(known)
    host = (urlsplit(chosen).hostname or "").lower()
    if urlsplit(chosen).scheme not in ("http", "https") or not host:
        raise UsageError(
            f'"{hidden(chosen)}" is not the address of a service',
            hint=f"give one such as {OPENROUTER_URL}",
        )
    names = [OWN_KEY, *_keys_of(host, chosen, known)]
    key = next((known[name] for name in names if name in known), "")
    if not key and host not in _LOOPBACK:
        raise MissingError(
            f"no API key for {host}",
            hint=f"set {' or '.join(names)}; or use --generator genetic, which needs no key",
        )
    return Endpoint(chosen, Secret(key))


def _usual_url(known: Mapping[str, str]) -> str:
    if OPENROUTER_KEY in known or (OWN_KEY in known and OPENAI_KEY not in known):
        return OPENROUTER_URL
    if OPENAI_KEY in known:
        return known.get(OPENAI_URL_VARIABLE, OPENAI_URL)
    raise MissingError(
        "no API key for a language model",
        hint=f"set {' or '.join(KEY_VARIABLES)}; or use --generator genetic, which needs no key",
    )


def _keys_of(host: str, url: str, known: Mapping[str, str]) -> list[str]:
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        return [OPENROUTER_KEY]
    is_named = url.rstrip("/") == known.get(OPENAI_URL_VARIABLE, "").rstrip("/")
    return [OPENAI_KEY] if is_named or host == "api.openai.com" else []
