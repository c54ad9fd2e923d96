"""Finds scheduler configurations in a file: bare, among other documents, or in a ConfigMap."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import read_text, reading
from podium.files.yaml_tree import parse_yaml
from podium.policies.scheduler_config.section import Section

KIND = "KubeSchedulerConfiguration"
DEFAULT_NAME = "default-scheduler"
LARGEST_BYTES = 16 << 20
"""Bytes of a configuration; a ConfigMap holds a sixteenth of it."""


def find_configuration(path: Path, profile: str | None = None) -> Section:
    """Finds the only configuration of a file, or the only one that has a profile of this name."""
    if not path.exists():
        raise InputError.at(path, "no such file", hint=f"give the path of a {KIND}")
    documents = _json(path) if path.suffix == ".json" else _yaml(path)
    found = [each for document in documents for each in _configurations(document, path)]
    if not found:
        raise _nothing(path, documents)
    names = [name for each in found for name in profile_names(each)]
    if profile is not None:
        found = [each for each in found if profile in profile_names(each)]
        if not found:
            raise InputError.at(
                path, f'no profile is named "{profile}"', hint=f"it has {', '.join(names)}"
            )
    if len(found) > 1:
        places = ", ".join(each.place or "a document" for each in found)
        raise InputError.at(
            path,
            f"{len(found)} configurations are possible: {places}",
            hint=f"name a profile that only one has, as in {path.name}#{names[-1]}, or keep one",
        )
    return Section(path, found[0].place, found[0].values)


def profile_names(configuration: Section) -> list[str]:
    """Lists the names of a configuration's profiles; without any there is the default one."""
    profiles = configuration.sections("profiles")
    return [each.text("schedulerName", DEFAULT_NAME) for each in profiles] or [DEFAULT_NAME]


def _configurations(document: Any, path: Path) -> Iterator[Section]:
    if not isinstance(document, dict):
        return
    if document.get("kind") == KIND:
        yield Section(path, "", document)
    elif document.get("kind") == "ConfigMap":
        yield from _in_config_map(document, path)
    elif document.get("kind") in ("List", "ConfigMapList"):
        items = document.get("items")
        for item in items if isinstance(items, list) else ():
            yield from _configurations(item, path)


def _in_config_map(document: dict[str, Any], path: Path) -> Iterator[Section]:
    data = document.get("data")
    for key, text in (data if isinstance(data, dict) else {}).items():
        if not isinstance(text, str) or KIND not in text:
            continue  # certificates, other programs' settings
        place = f"data.{key}"
        for root in parse_yaml(io.StringIO(text), Path(f"{path}, {place}")):
            value = root.typed_value(path)
            if isinstance(value, dict) and value.get("kind") == KIND:
                yield Section(path, place, value)


def _nothing(path: Path, documents: list[Any]) -> InputError:
    kinds = sorted(
        {excerpt(each.get("kind"), quote="") for each in documents if isinstance(each, dict)}
    )
    found = f" ({', '.join(kinds)} instead)" if kinds else ""
    return InputError.at(
        path,
        f"the file contains no {KIND}{found}",
        hint="clusters go to --cluster, pods to --trace",
    )


def _json(path: Path) -> list[Any]:
    try:
        return [parse_value(read_text(path, LARGEST_BYTES))]
    except JsonError as error:
        raise InputError.at(path, f"not JSON: {error}", line=error.line) from error


def _yaml(path: Path) -> list[Any]:
    with reading(path, most_bytes=LARGEST_BYTES) as stream:
        return [root.typed_value(path) for root in parse_yaml(stream, path)]
