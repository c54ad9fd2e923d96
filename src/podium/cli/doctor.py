"""Checks this installation and says what to fix."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, replace

import typer

from podium.cli.checks import CHECKS
from podium.cli.finding import Finding
from podium.cli.group import new_app
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.errors import SettingsError
from podium.settings import Settings, configured_secrets, default_settings

app = new_app()


@app.command()
def doctor(ctx: typer.Context, is_json: Json = False) -> None:
    """Checks this installation and says what to fix.

    Exits with 1 when something is broken; warnings and notes leave it at 0.
    """
    settings, findings = settings_or_defaults(ctx)
    screen = Screen(settings.display)
    with screen.progress("checking", len(CHECKS)) as advance:
        for check in CHECKS:
            findings.extend(check(settings))
            advance()
    secrets = configured_secrets(sys.argv[1:])
    findings = [
        replace(f, detail=secrets.hide(f.detail), hint=secrets.hide(f.hint)) for f in findings
    ]
    counts = Counter(finding.status for finding in findings)
    if is_json:
        print_json({"is_sound": not counts["broken"], "findings": [asdict(f) for f in findings]})
    else:
        _show(screen, findings)
    raise typer.Exit(1 if counts["broken"] else 0)


def settings_or_defaults(ctx: typer.Context) -> tuple[Settings, list[Finding]]:
    """Reads the settings; wrong ones are a finding, and the defaults stand in."""
    try:
        settings = read_settings(ctx)
    except SettingsError as error:
        places = error.where.splitlines() if "\n" in error.where else [str(error)]
        hint = error.hint
        return default_settings(), [Finding("settings", "broken", p, hint) for p in places]
    changed = sum(origin != "default" for origin in settings.origins.values())
    return settings, [Finding("settings", "ok", f"{changed} differ from the defaults")]


def _show(screen: Screen, findings: list[Finding]) -> None:
    screen.table(["check", "status", "finding"], [(f.check, f.status, f.detail) for f in findings])
    for finding in findings:
        if finding.hint:
            screen.note(f"{finding.status}: {finding.check}: {finding.hint}")
