"""Settings: the only reader of the environment and of podium.toml."""

from podium.settings.extender import Extender
from podium.settings.key import Key, Shown, keys, secrets_of, sections, shown
from podium.settings.load import (
    FILE,
    configured_secrets,
    default_settings,
    inspect_settings,
    load_settings,
    refusal,
    wishes,
)
from podium.settings.secret import (
    Secrets,
    hidden,
    hidden_command,
    is_secret_name,
    known_secrets,
    secrets_within,
)
from podium.settings.sections import (
    GPU_LABELS,
    Compile,
    Display,
    Online,
    Search,
    Settings,
    Simulate,
    Store,
    Traces,
)
from podium.settings.serve import Serve
from podium.settings.sources import Refusal
from podium.settings.trust import Trusted, doubt_own
from podium.settings.url import MASK, without_password

__all__ = [
    "FILE", "GPU_LABELS", "MASK", "Compile", "Display", "Extender", "Key", "Online", "Refusal",
    "Search", "Secrets", "Serve", "Settings", "Shown", "Simulate", "Store", "Traces", "Trusted",
    "configured_secrets", "default_settings", "doubt_own", "hidden", "hidden_command",
    "inspect_settings", "is_secret_name", "keys", "known_secrets", "load_settings", "refusal",
    "secrets_of", "secrets_within", "sections", "shown", "wishes", "without_password",
]  # fmt: skip
