"""Finds the programs of a control plane on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from podium.errors import MissingError
from podium.settings.about import cache_folder

PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler")
KUBERNETES = "v1.36.4"
"""The version that the tool beside this builds, and that the tests run against."""

BUILD_TOOL = Path(__file__).parents[1] / "data" / "build_control_plane.sh"
ASSETS = "KUBEBUILDER_ASSETS"


def find_programs(environ: Mapping[str, str] = os.environ) -> Path:
    """Finds the folder of the programs: as controller-runtime's envtest does, else the cache.

    Raises:
        MissingError: they are not all there.
    """
    named = environ.get(ASSETS)
    folder = Path(named) if named else cache_folder("kube")() / KUBERNETES
    missing = missing_programs(folder)
    if not missing:
        return folder.resolve()
    other = "" if named else f"; or let {ASSETS} name a folder that has them"
    raise MissingError(
        f"a control plane needs {listed(missing)}, and {_are(missing)} not there",
        where=f"{ASSETS}={folder}" if named else str(folder),
        hint=f"bash {BUILD_TOOL}{f' {folder}' if named else ''}  # builds {_it(missing)} with Go,"
        f" once, in up to 30 minutes{other}",
    )


def missing_programs(folder: Path) -> list[str]:
    """Lists the programs that a folder lacks."""
    return [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]


def listed(names: list[str]) -> str:
    """Joins names as a sentence does.

    >>> listed(["etcd", "kube-apiserver", "kube-scheduler"])
    'etcd, kube-apiserver and kube-scheduler'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _are(missing: list[str]) -> str:
    return "it is" if len(missing) == 1 else "they are"


def _it(missing: list[str]) -> str:
    return "it" if len(missing) == 1 else "them"
