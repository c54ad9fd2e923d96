"""Installs Podium on clusters."""

from __future__ import annotations

from podium.cli.group import new_app
from podium.cli.kube_manifests import print_manifests

app = new_app(__doc__)

app.command("manifests")(print_manifests)


@app.callback()
def kube() -> None:
    """Installs Podium on clusters."""
