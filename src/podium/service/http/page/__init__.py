"""Writes the page that describes all routes and lets people try them; it fetches nothing else."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from podium.service.http.page.words import anchor, fields_table, in_words

Operation = Mapping[str, Any]


class Shapes:
    """Shows every shape once: where it is first needed, or at the end."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._left = dict(schemas)

    def shown(self, schema: Mapping[str, Any]) -> str:
        """Describes the shapes that a body may have."""
        kinds = schema.get("oneOf") or schema.get("anyOf") or [schema]
        names = [each["$ref"].rpartition("/")[2] for each in kinds if "$ref" in each]
        return "".join(self._take(name) for name in names)

    def rest(self) -> str:
        """Describes all others."""
        return "".join(self._take(name) for name in sorted(self._left))

    def _take(self, name: str) -> str:
        schema = self._left.pop(name, None)
        if schema is None:
            return ""
        return (
            f'<div id="{anchor(name)}"><h4>{escape(name)}</h4>'
            f"<p>{escape(schema.get('description', ''))}</p>{fields_table(schema)}</div>"
        )


def content_policy() -> str:
    """Lets the page run its own script and style alone, and ask this service alone."""
    style, script = (_digest(_text(name)) for name in ("page.css", "page.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_of(document: Mapping[str, Any]) -> str:
    """Describes an OpenAPI document."""
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    rows = list(_operations(document))
    shapes = Shapes(document.get("components", {}).get("schemas", {}))
    sections = "".join(_section(shapes, *row) for row in rows)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<style>{_text('page.css')}</style>"
        f"<header><h1>{title}</h1><p>{escape(info.get('description', ''))} "
        'For machines: <a href="/openapi.json">/openapi.json</a>.</p></header>'
        f"<nav><ul>{''.join(_entry(*row) for row in rows)}</ul></nav>"
        f"<main>{sections}<h2>Shapes inside others</h2>{shapes.rest()}</main>"
        f"<script>{_text('page.js')}</script></html>"
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _entry(path: str, method: str, operation: Operation) -> str:
    return (
        f'<li><a href="#{anchor(method + path)}"><code>{method} {escape(path)}</code></a> '
        f"{escape(_description(operation))}</li>"
    )


def _section(shapes: Shapes, path: str, method: str, operation: Operation) -> str:
    return (
        f'<section id="{anchor(method + path)}"><h2><code>{method} {escape(path)}</code></h2>'
        f"<p>{escape(_description(operation))}</p>{_parameters(operation)}"
        f"{_asked(shapes, operation)}{_answered(shapes, operation)}"
        f"{_trial(path, method, operation)}</section>"
    )


def _description(operation: Operation) -> str:
    return str(operation.get("description") or operation.get("summary", ""))


def _parameters(operation: Operation) -> str:
    rows = [
        f"<p><code>{escape(each['name'])}</code> ({escape(each['in'])}): "
        f"{escape(each.get('description', ''))}</p>"
        for each in operation.get("parameters", ())
    ]
    return "".join(rows)


def _asked(shapes: Shapes, operation: Operation) -> str:
    if "requestBody" not in operation:
        return ""
    schema = _schema(operation["requestBody"])
    return f"<p>Takes {in_words(schema)}.</p>{shapes.shown(schema)}"


def _answered(shapes: Shapes, operation: Operation) -> str:
    replies = dict(operation["responses"])
    found, later = replies.pop("200", {}), replies.pop("202", {})
    kind, schema = next(iter(found.get("content", {})), ""), _schema(found)
    is_json = kind == "application/json"
    shape, table = (in_words(schema), shapes.shown(schema)) if is_json else (escape(kind), "")
    errors = ", ".join(
        f"{escape(str(status))} {escape(reply.get('description', '').lower())}"
        for status, reply in replies.items()
    )
    refused = f'<p class="errors">Errors: {errors}.</p>' if errors else ""
    unfinished = f"<p>Status 202: {escape(later['description'])}</p>" if later else ""
    return f"<p>Answers with {shape}.</p>{table}{unfinished}{refused}"


def _trial(path: str, method: str, operation: Operation) -> str:
    bodies = [
        json.dumps(example["value"], indent=2)
        for example in _examples(operation)
        if "value" in example
    ]
    area = f"<textarea rows=8 spellcheck=false>{escape(bodies[0])}</textarea>" if bodies else ""
    return (
        "<details><summary>Try it</summary>"
        f'<form data-method="{method}" data-path="{escape(path)}">'
        f"{area}<button>Send</button><pre hidden></pre></form></details>"
    )


def _examples(operation: Operation) -> list[Mapping[str, Any]]:
    for media in operation.get("requestBody", {}).get("content", {}).values():
        return list(media.get("examples", {}).values())
    return []


def _schema(holder: Mapping[str, Any]) -> Mapping[str, Any]:
    for media in holder.get("content", {}).values():
        return dict(media.get("schema", {}))
    return {}


def _text(name: str) -> str:
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
