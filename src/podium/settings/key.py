"""Names the keys of all sections, and lists their values for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

from podium.settings.about import About
from podium.settings.secret import (
    Secrets,
    hidden,
    hidden_table,
    known_secrets,
    secrets_of_table,
)
from podium.settings.sections import Settings
from podium.settings.url import MASK, secrets_in, without_password

AGENT_NAMES = {
    "online.beta_exploration": "SCHEDULER_BETA_EXPLORATION",
    "online.enable_interference": "SCHEDULER_ENABLE_INTERFERENCE",
    "online.exploration_cap": "SCHEDULER_EXPLORATION_CAP",
    "online.gamma_interference": "SCHEDULER_GAMMA_INTERFERENCE",
    "online.lambda_uncertainty": "SCHEDULER_LAMBDA_UNCERTAINTY",
    "online.tau_squared": "SCHEDULER_TAU_SQUARED",
    "serve.checkpoint_interval_s": "SCHEDULER_CHECKPOINT_INTERVAL",
    "serve.host": "SCHEDULER_HOST",
    "serve.log_level": "SCHEDULER_LOG_LEVEL",
    "serve.port": "SCHEDULER_PORT",
    "serve.retention_observations": "SCHEDULER_RETENTION_OBSERVATIONS",
    "store.url": "SCHEDULER_SQLITE_PATH",
}
"""Variables that set the agent which Podium replaces: its deployments go on with them."""


@dataclass(frozen=True, slots=True)
class Key:
    """Describes one key of one section."""

    section: str
    name: str
    kind: type
    about: About

    @property
    def path(self) -> str:
        """Names the key in full."""
        return f"{self.section}.{self.name}"

    @property
    def env_names(self) -> tuple[str, ...]:
        """Names the environment variables that set it."""
        full = f"PODIUM_{self.section}_{self.name}".upper()
        others = (self.about.short_env, AGENT_NAMES.get(self.path, ""))
        return (full, *filter(None, others))

    @property
    def flag(self) -> str:
        """Names the flag that sets it, where a verb has one."""
        return self.about.flag or "--" + self.name.replace("_", "-")


@dataclass(frozen=True, slots=True)
class Shown:
    """A setting as it may be printed."""

    path: str
    value: Any
    origin: str
    help: str


@cache
def sections() -> Mapping[str, type]:
    """Maps the name of each section to its dataclass."""
    hints = get_type_hints(Settings)
    return {
        name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)
    }


@cache
def keys() -> Mapping[str, Key]:
    """Maps the path of each key to its description."""
    return {key.path: key for name, cls in sections().items() for key in keys_of(name, cls)}


def keys_of(section: str, cls: Any) -> Iterator[Key]:
    """Describes the keys of one section."""
    hints = get_type_hints(cls)
    for item in fields(cls):
        kinds = [kind for kind in get_args(hints[item.name]) if kind is not NoneType]
        yield Key(
            section=section,
            name=item.name,
            kind=kinds[0] if kinds else hints[item.name],
            about=item.metadata["about"],
        )


def shown(settings: Settings) -> list[Shown]:
    """Lists every setting with its value and origin, secrets masked."""
    return [_shown(settings, key) for key in keys().values()]


def _shown(settings: Settings, key: Key) -> Shown:
    value = getattr(getattr(settings, key.section), key.name)
    return Shown(key.path, masked(key, value), settings.origins[key.path], key.about.help)


def masked(key: Key, value: Any) -> Any:
    """Hides a secret that is set, and passwords in addresses."""
    if value is not None and key.about.is_secret:
        return MASK
    if key.about.is_url and isinstance(value, str):
        return _masked_address(value)
    return hidden_table(value) if isinstance(value, str) else value


def _masked_address(address: str) -> str:
    """Hides the password, also where it is an option's value once more, and what looks like one."""
    place, mark, options = hidden(without_password(address)).partition("?")
    for secret in filter(None, secrets_in(address)):
        options = options.replace(secret, MASK)
    return place + mark + options


def secrets_of(
    settings: Settings, environ: Mapping[str, str], words: Sequence[str] = (), token: str = ""
) -> Secrets:
    """Gathers what is secret: in settings, environment, words of a command line; and a token."""
    values = {key: getattr(getattr(settings, key.section), key.name) for key in keys().values()}
    addresses = [value for key, value in values.items() if key.about.is_url]
    tokens = [value for key, value in values.items() if key.about.is_secret]
    texts = [value for value in values.values() if isinstance(value, str)]
    within = [secret for text in texts for secret in secrets_of_table(text)]
    return known_secrets(environ, [*words, *addresses], [*tokens, token, *within])
