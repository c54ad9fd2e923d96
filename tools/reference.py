"""Writes the parts of the documentation that the program itself knows.

The pages call these functions from cog blocks; `make docs` runs them, and a test checks that
nothing has changed since.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from typer.main import get_command
from typer.testing import CliRunner

from podium import errors
from podium.cli import failure
from podium.cli.main import Podium, app
from podium.cli.render import plain_table
from podium.errors import PodiumError
from podium.policies import PairPolicy, catalogue, load
from podium.settings import Key, default_settings, keys
from podium.settings.folder import any_value, inside, names, no_value
from podium.sim import metrics

ROOT = Path(__file__).resolve().parents[1]
Row = Iterable[object]


def table(titles: Row, rows: Iterable[Row]) -> str:
    """Writes a Markdown table."""
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def command_paths() -> list[tuple[str, ...]]:
    """Lists every verb, and every verb of a noun, in the order of the help."""
    found: list[tuple[str, ...]] = []
    for verb in Podium.verbs:
        found.append((verb.name,))
        found += [(verb.name, name) for name in _children(verb.module)]
    return found


def _children(module: str) -> list[str]:
    command: Any = get_command(importlib.import_module(module).app)
    return list(getattr(command, "commands", ()))


def commands() -> str:
    """Writes the help of every command under a heading of its own."""
    return "\n".join([_help(()), *(_command(path) for path in command_paths())])


def _command(path: tuple[str, ...]) -> str:
    return f"{'#' * (1 + len(path))} podium {' '.join(path)}\n\n{_help(path)}"


def _help(path: tuple[str, ...]) -> str:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    printed = CliRunner(env=environment).invoke(app, [*path, "--help"], prog_name="podium")
    lines = [line.rstrip() for line in printed.stdout.strip().splitlines()]
    return "\n".join(["```text", *lines, "```", ""])


FROM_FOLDER = {
    any_value: "yes",
    names: "names",
    inside: "names, and files in it",
    no_value: "once trusted",
}
"""What ./podium.toml may set without being trusted."""


def settings() -> str:
    """Writes a row for every setting."""
    flags = _flags()
    rows = [
        (
            f"`{key.path}`",
            _default(key),
            _described(key),
            " or ".join(f"`{name}`" for name in key.env_names),
            f"`{key.flag}`" if key.flag in flags else "",
            FROM_FOLDER[key.about.from_folder],
        )
        for key in keys().values()
    ]
    titles = ("setting", "default", "what it is", "environment", "flag", "from a folder")
    return table(titles, rows)


def _flags() -> set[str]:
    found: set[str] = {"--no-progress", "--quiet"}
    for verb in Podium.verbs:
        command: Any = get_command(importlib.import_module(verb.module).app)
        for each in getattr(command, "commands", {"": command}).values():
            found.update(name for parameter in each.params for name in parameter.opts)
    return found


def _default(key: Key) -> str:
    value = getattr(getattr(default_settings(), key.section), key.name)
    if isinstance(value, Path):
        return f"`{_at_home(value)}`"
    if value in (None, ""):
        return "unset"
    if key.about.is_url:
        return f"`sqlite:///{_at_home(Path(value.removeprefix('sqlite:///')))}`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _at_home(path: Path) -> str:
    for variable, home in (("XDG_CACHE_HOME", "~/.cache"), ("XDG_DATA_HOME", "~/.local/share")):
        folder = Path(os.environ.get(variable) or home).expanduser()
        if path.is_relative_to(folder):
            return f"{home}/{path.relative_to(folder)}"
    raise ValueError(f"{path} lies in no folder of the user")


def _described(key: Key) -> str:
    about = key.about
    choices = f": {', '.join(f'`{choice}`' for choice in about.choices)}" if about.choices else ""
    return about.help + choices + (f" ({about.bounds})" if about.bounds else "")


def chart_values() -> str:
    """Writes a row for every value of the Helm chart."""
    chart = ROOT / "charts" / "podium"
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((chart / "values.schema.json").read_text(encoding="utf-8"))
    return table(("value", "default", "what it is"), _value_rows(values, schema))


def _value_rows(values: Any, schema: Any, path: str = "") -> Iterator[Row]:
    for name, value in values.items():
        described = schema["properties"][name]
        if "properties" in described:
            yield from _value_rows(value, described, f"{path}{name}.")
        else:
            shown = f"`{json.dumps(value)}`" if value not in ("", [], {}) else ""
            choices = ", ".join(f"`{choice}`" for choice in described.get("enum", ()))
            meaning = described["description"]
            is_told = not choices or all(each in meaning for each in described["enum"])
            yield f"`{path}{name}`", shown, meaning if is_told else f"{meaning}: {choices}"


def error_classes() -> list[type[PodiumError]]:
    """Lists every error that Podium raises on purpose, and the one for its own mistakes."""
    own = [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, PodiumError)
    ]
    return [*own, failure.InternalError]


def error_table() -> str:
    """Writes a row for every class of error."""
    rows = [
        (f"`{cls.__name__}`", f"`{cls.__mro__[1].__name__}`", cls.exit_code, inspect.getdoc(cls))
        for cls in error_classes()
    ]
    return table(("error", "is a", "exit code", "meaning"), rows)


def exit_codes() -> str:
    """Writes a row for every exit code, from the docstring that lists them."""
    lines = (failure.__doc__ or "").splitlines()
    rows = [line.split(maxsplit=1) for line in lines if line[:1].isdigit()]
    return table(("exit code", "meaning"), rows)


def policy_table() -> str:
    """Writes a row for every policy that ships."""
    rows = [
        (f"[`{info.name}`](#{info.name})", info.kind, info.origin,
         "yes" if info.may_hold else "no", info.summary)
        for info in catalogue()
    ]  # fmt: skip
    return table(("policy", "kind", "origin", "may hold", "summary"), rows)


def policy_sections() -> str:
    """Writes a heading for every policy that ships, with its docstring and its form."""
    return "\n".join(_policy_section(info.name, info.source) for info in catalogue())


def _policy_section(name: str, source: str) -> str:
    policy = load(name)
    if policy.source is None:
        doc, facts = _trained(policy.summary, source), [f"[weights](../src/{source})"]
    else:
        doc = (ast.get_docstring(ast.parse(policy.source.text)) or "").strip()
        facts = [f"[source](../src/{source})"]
    facts += _form(policy)
    return f"### {name}\n\n{doc}\n\n{', '.join(facts)}.\n"


def _trained(summary: str, source: str) -> str:
    """Describes trained weights by their card."""
    card = json.loads((ROOT / "src" / source).with_suffix(".json").read_text(encoding="utf-8"))
    of = card["training"]
    return (
        f"{summary}\n\n[Trained](training.md) by `{of['command']}`, seed {of['seed']}, in "
        f"{of['seconds']:,.0f} s, on: {of['data'].rstrip('.')}."
    )


def _form(policy: Any) -> Iterator[str]:
    if isinstance(policy, PairPolicy):
        yield f"`score({', '.join(policy.form)})`"
        if policy.ties != "rank":
            yield f"ties: {policy.ties}"
    else:
        yield "`choose(pod, nodes, feasible)`"
    if policy.gpu_choice != "best":
        yield f"GPU choice: {policy.gpu_choice}"


def reproduced() -> str:
    """Writes the table of repeated FGD experiments, as the command prints it."""
    path = Path("docs/figures/reproduction.json")
    kept = json.loads(path.read_text(encoding="utf-8"))["rows"]
    titles = ["trace", "policy", "100 % ours", "published", "130 % ours", "published"]
    titles += ["frag ours", "published", "largest diff"]
    rows = [[*row[:2], *(f"{value:.2f}" for value in row[2:])] for row in kept]
    lines = plain_table(titles, rows, [False, False, *[True] * 7])
    return "\n".join(["```text", *lines, "```", ""])


def metric_fields() -> str:
    """Writes a row for every field of a run's figures, with the comment beside it."""
    rows = [
        (f"`{prefix}{name}`", f"`{kind}`", comment)
        for prefix, cls in (("", metrics.Metrics), ("waiting.", metrics.Waiting))
        for name, kind, comment in _commented_fields(cls)
    ]
    return table(("field", "type", "comment"), rows)


def _commented_fields(cls: type[Any]) -> Iterator[tuple[str, str, str]]:
    lines = inspect.getsource(cls).splitlines()
    for item in fields(cls):
        line = next(line for line in lines if line.strip().startswith(f"{item.name}:"))
        yield item.name, str(item.type), line.partition("#")[2].strip()
