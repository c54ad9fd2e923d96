"""Runs a control plane for tests, with kwok in place of kubelets where they need one."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from podium.kube.local import control_plane as local
from podium.kube.local.daemon import running
from podium.kube.local.programs import ASSETS, missing_programs
from support.kube_api import KubeApi

# What Podium reads and Kubernetes does not do unless it is told to.
COMPARISONS = ("TaintTolerationComparisonOperators",)
GANGS = local.GANGS


class ProgramsMissingError(Exception):
    """Tells that a control plane cannot run here, and what to do about it."""


@dataclass(frozen=True, kw_only=True)
class ControlPlane(local.ControlPlane):
    """Holds a running control plane, and changes the objects in it."""

    api: KubeApi

    @contextmanager
    def kwok(self) -> Iterator[None]:
        """Lets bound pods start, end after the time of an annotation, and go when deleted."""
        stages = Path(__file__).with_name("kwok_stages.yaml")
        command: list[str | Path] = [
            self.programs / "kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=true",
            f"--config={stages}",
        ]  # fmt: skip
        with running(command, self.log("kwok")):
            yield

    def compact(self) -> None:
        """Has etcd forget all versions but the latest."""
        key = base64.b64encode(b"/registry").decode()
        revision = self._etcd("range", {"key": key})["header"]["revision"]
        self._etcd("compaction", {"revision": revision, "physical": True})

    def _etcd(self, path: str, body: object) -> Any:
        url = f"http://127.0.0.1:{self.etcd_port}/v3/kv/{path}"
        request = urllib.request.Request(url, json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


def find_programs(environ: Mapping[str, str] = os.environ) -> Path:
    """Finds the folder of the programs, which has to be named: tests build nothing in passing."""
    named = environ.get(ASSETS)
    if not named:
        raise ProgramsMissingError(
            "KUBEBUILDER_ASSETS does not name a folder with etcd, kube-apiserver and"
            " kube-scheduler: `make e2e` builds them and runs these tests"
        )
    missing = missing_programs(Path(named))
    if missing:
        raise ProgramsMissingError(
            f"KUBEBUILDER_ASSETS names {named}, which lacks {', '.join(missing)}:"
            f" `tools/build_control_plane.sh {named}` builds what is missing"
        )
    return Path(named).resolve()


@contextmanager
def control_plane(
    programs: Path, feature_gates: tuple[str, ...] = COMPARISONS
) -> Iterator[ControlPlane]:
    """Starts etcd and kube-apiserver in a temporary folder, and stops them whatever happens."""
    with (
        local.control_plane(programs, feature_gates) as plane,
        contextlib.closing(KubeApi(plane.access)) as api,
    ):
        held = {each.name: getattr(plane, each.name) for each in fields(plane)}
        yield ControlPlane(**held, api=api)
