"""Writes the page that describes all routes: plain HTML, nothing fetched from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#f4f4f4;padding:1rem;overflow:auto}code{font-size:.95em}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#eee}pre{background:#222}}"
)


def page_of(document: Mapping[str, Any]) -> str:
    """Describes an OpenAPI document."""
    title = escape(f"{document['info']['title']} {document['info']['version']}")
    parts = [part for row in _operations(document) for part in _described(*row)]
    schemas = document.get("components", {}).get("schemas", {})
    parts += [f"<h3>{escape(name)}</h3>{_block(schemas[name])}" for name in sorted(schemas)]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>{escape(document['info'].get('description', ''))} "
        f'For machines: <a href="/openapi.json">/openapi.json</a>.</p>{"".join(parts)}</html>'
    )


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _described(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2>"
    yield f"<p>{escape(operation.get('description', operation.get('summary', '')))}</p>"
    if "requestBody" in operation:
        yield f"<h4>Body</h4>{_block(_schema(operation['requestBody']))}"
    for status, reply in operation["responses"].items():
        yield f"<h4>{escape(str(status))}</h4>{_block(_schema(reply))}"


def _schema(holder: Mapping[str, Any]) -> Any:
    for media in holder.get("content", {}).values():
        return media.get("schema", {})
    return {}


def _block(value: Any) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2))}</pre>"
