"""Tells the chart which policies ship and which settings there are, so that it refuses others.

`make manifests` runs it; a test checks that nothing has changed since.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from podium.policies import catalogue
from podium.policies.registry import ALIASES
from podium.settings import Key, keys

CHART = Path(__file__).resolve().parents[1] / "charts" / "podium"
TYPES = {bool: "boolean", int: "integer", float: "number"}


def main() -> None:
    """Writes both files."""
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")


def written() -> dict[Path, str]:
    """Gives the text of each file by its path."""
    schema = CHART / "values.schema.json"
    described = json.loads(schema.read_text(encoding="utf-8"))
    described["properties"]["settings"] |= _object(_sections())
    names = sorted([*(each.name for each in catalogue()), *ALIASES])
    return {
        schema: json.dumps(described, indent=2, ensure_ascii=False) + "\n",
        CHART / "policies.txt": "".join(f"{name}\n" for name in names),
    }


def _sections() -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {}
    for key in keys().values():
        sections.setdefault(key.section, {})[key.name] = _setting(key)
    return {name: _object(settings) for name, settings in sections.items()}


def _setting(key: Key) -> dict[str, Any]:
    choices = {"enum": list(key.about.choices)} if key.about.choices else {}
    return {"type": TYPES.get(key.kind, "string"), **choices}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


if __name__ == "__main__":
    main()
