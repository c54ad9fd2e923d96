"""Settings: the only reader of the environment and of podium.toml."""

from podium.settings.extender import Extender
from podium.settings.key import Key, Shown, keys, secrets_of, sections, shown
from podium.settings.load import configured_secrets, default_settings, load_settings
from podium.settings.secret import Secrets, hidden, hidden_command, is_secret_name, known_secrets
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
from podium.settings.url import MASK, without_password

__all__ = [
    "GPU_LABELS", "MASK", "Compile", "Display", "Extender", "Key", "Online", "Search", "Secrets",
    "Serve", "Settings", "Shown", "Simulate", "Store", "Traces", "configured_secrets",
    "default_settings", "hidden", "hidden_command", "is_secret_name", "keys", "known_secrets",
    "load_settings", "secrets_of", "sections", "shown", "without_password",
]  # fmt: skip
