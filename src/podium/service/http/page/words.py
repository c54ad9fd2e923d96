"""Describes in words what a JSON schema allows."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

Schema = Mapping[str, Any]


def anchor(name: str) -> str:
    """Returns the anchor of a place on the page."""
    return "".join(each if each.isalnum() else "-" for each in name).strip("-").lower()


def fields_table(schema: Schema) -> str:
    """Lists the fields of an object."""
    needed = set(schema.get("required", ()))
    rows = [
        f"<tr><td><code>{escape(name)}</code></td><td>{in_words(field)}"
        f"{'' if name in needed else ', optional'}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def in_words(schema: Schema) -> str:
    """Describes what a value may be."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{anchor(name)}">{escape(name)}</a>'
    for kind in ("anyOf", "oneOf"):
        if kind in schema and "type" not in schema:
            return " or ".join(in_words(each) for each in schema[kind])
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "enum" in schema:
        return "one of " + ", ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    return _of_type(schema)


def _of_type(schema: Schema) -> str:
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {in_words(schema.get('items', {}))}"
    if kind == "object":
        return _object(schema)
    if kind in ("number", "integer"):
        return kind + _range(schema.get("minimum"), schema.get("maximum"))
    if kind == "string" and "maxLength" in schema:
        return f"string of at most {schema['maxLength']:,} characters"
    return escape(kind)


def _object(schema: Schema) -> str:
    named = ", ".join(f"<code>{escape(name)}</code>" for name in schema.get("properties", {}))
    more = schema.get("additionalProperties")
    whole = f"object with {named}" if named else "object"
    if isinstance(more, Mapping):
        whole += f" and others, each {in_words(more)}" if named else f" of {in_words(more)}"
    return whole


def _range(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f", at least {least:g}"
    return f", at most {most:g}" if least is None else f", {least:g} to {most:g}"
