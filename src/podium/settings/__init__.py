"""Settings: the only reader of the environment and of podium.toml."""

from podium.settings.key import MASK, Key, Shown, keys, sections, shown
from podium.settings.load import default_settings, load_settings
from podium.settings.sections import Compile, Display, Settings, Simulate, Traces

__all__ = [
    "MASK", "Compile", "Display", "Key", "Settings", "Shown", "Simulate", "Traces",
    "default_settings", "keys", "load_settings", "sections", "shown",
]  # fmt: skip
