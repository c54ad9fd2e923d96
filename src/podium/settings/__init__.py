"""Settings: the only reader of the environment and of podium.toml."""

from podium.settings.key import Key, Shown, keys, sections, shown
from podium.settings.load import default_settings, load_settings
from podium.settings.sections import (
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
    "MASK", "Compile", "Display", "Key", "Online", "Search", "Serve", "Settings", "Shown",
    "Simulate", "Store", "Traces", "default_settings", "keys", "load_settings", "sections", "shown",
    "without_password",
]  # fmt: skip
