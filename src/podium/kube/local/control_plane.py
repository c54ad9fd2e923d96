"""Runs etcd, kube-apiserver and kube-scheduler on the loopback interface, without containers.

There is no kubelet and no controller manager: nodes are what somebody says they are, pods stay
bound, and DaemonSets or Jobs make no pods.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.kube.local.certificate import make_certificate
from podium.kube.local.daemon import free_ports, running, tail
from podium.kube.local.folder import temporary_folder
from podium.kube.local.server import Server

# ServiceAccount waits for a controller. TaintNodesByCondition taints new nodes until a controller
# finds them ready. DefaultTolerationSeconds adds tolerations that nobody wrote.
# StorageObjectInUseProtection keeps volumes until a controller lets them go.
ADMISSION_OFF = (
    "ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds,StorageObjectInUseProtection"
)
GANGS = ("GenericWorkload", "GangScheduling")
DEFAULT_PROFILE: Mapping[str, Any] = {"profiles": [{"schedulerName": "default-scheduler"}]}


@dataclass(frozen=True)
class ControlPlane:
    """Holds a running etcd and kube-apiserver; runs schedulers beside them."""

    programs: Path
    folder: Path
    access: Server
    feature_gates: tuple[str, ...] = ()
    logs: dict[str, Path] = field(default_factory=dict)
    guest_token: str = field(default_factory=secrets.token_hex)  # of a user without rights
    _servers: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def kubeconfig(self) -> Path:
        """Names the file that clients of Kubernetes read; it lets them do everything."""
        return self.folder / "kubeconfig"

    @property
    def key(self) -> Path:
        """Names the private key of all that serves here."""
        return self.folder / "key.pem"

    @property
    def gates(self) -> list[str]:
        """Writes the features that are on beside those that always are, as an argument."""
        named = ",".join(each if "=" in each else f"{each}=true" for each in self.feature_gates)
        return [f"--feature-gates={named}"] if named else []

    @property
    def etcd_port(self) -> int:
        """Gives the port on which etcd answers, in JSON as well."""
        return int((self.folder / "etcd.port").read_text())

    def start_api_server(self) -> None:
        """Starts kube-apiserver and waits until it is ready."""
        server = running(_api_server(self), self.log("kube-apiserver"))
        daemon = self._servers.enter_context(server)
        # Asked to stop, it waits for whoever watches.
        self._servers.callback(daemon.process.kill)
        daemon.wait_until_ready(self.access.port, self.access.certificate)

    def stop_api_server(self) -> None:
        """Stops kube-apiserver; connections break off."""
        self._servers.close()

    @contextmanager
    def scheduler(self, configuration: Mapping[str, Any] = DEFAULT_PROFILE) -> Iterator[int]:
        """Runs kube-scheduler with a KubeSchedulerConfiguration for as long as the block.

        Gives the port on which it tells its figures. Several run side by side where their profiles
        have different names.
        """
        (port,) = free_ports(1)
        with running(self._scheduler(configuration, port), self.log("kube-scheduler")) as daemon:
            daemon.wait_until_ready(port, self.access.certificate)
            yield port

    def log(self, name: str) -> Path:
        """Opens a new file for what a program writes, in place of the last of that name."""
        handle, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log", dir=self.folder)
        os.close(handle)
        self.logs[name] = Path(path)
        return self.logs[name]

    def log_tails(self) -> dict[str, str]:
        """Gives the last lines of every program, by name."""
        return {name: tail(log) for name, log in self.logs.items()}

    def _scheduler(self, configuration: Mapping[str, Any], port: int) -> list[str | Path]:
        file = self.folder / f"scheduler-{port}.json"
        connection = {"kubeconfig": str(self.kubeconfig), "qps": 5000, "burst": 5000}
        complete = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": connection,
            **configuration,
        }
        file.write_text(json.dumps(complete))
        return [
            self.programs / "kube-scheduler", f"--config={file}", "--bind-address=127.0.0.1",
            f"--secure-port={port}", f"--tls-cert-file={self.access.certificate}",
            f"--tls-private-key-file={self.key}",
            f"--authentication-kubeconfig={self.kubeconfig}",
            f"--authorization-kubeconfig={self.kubeconfig}", "--authentication-skip-lookup",
            *self.gates,
        ]  # fmt: skip


@contextmanager
def control_plane(programs: Path, feature_gates: tuple[str, ...] = ()) -> Iterator[ControlPlane]:
    """Starts etcd and kube-apiserver in a temporary folder, and stops them whatever happens."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        certificate, _ = make_certificate(folder)
        client_port, peer_port, port = free_ports(3)
        access = Server(port, secrets.token_hex(), certificate)
        plane = ControlPlane(programs, folder, access, feature_gates)
        plane.kubeconfig.write_text(json.dumps(access.kubeconfig()))
        etcd = running(_etcd(plane, client_port, peer_port), plane.log("etcd"))
        (folder / "etcd.port").write_text(str(client_port))
        stack.enter_context(etcd).wait_until_ready(client_port)
        stack.callback(plane.stop_api_server)
        plane.start_api_server()
        yield plane


def _etcd(plane: ControlPlane, client_port: int, peer_port: int) -> list[str | Path]:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    # Nothing here outlives its maker, so nothing need reach the disk.
    return [
        plane.programs / "etcd", f"--data-dir={plane.folder / 'etcd'}", "--unsafe-no-fsync",
        f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}", "--log-level=warn",
    ]  # fmt: skip


def _api_server(plane: ControlPlane) -> list[str | Path]:
    access = plane.access
    has_groups = {*GANGS} <= {*plane.feature_gates}
    groups = ["--runtime-config=scheduling.k8s.io/v1alpha2=true"] if has_groups else []
    tokens = plane.folder / "tokens.csv"
    guest = f"{plane.guest_token},guest,2\n"
    tokens.write_text(f'{access.token},admin,1,"system:masters"\n{guest}')
    return [
        plane.programs / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{plane.etcd_port}",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
        f"--secure-port={access.port}", f"--tls-cert-file={access.certificate}",
        f"--tls-private-key-file={plane.key}", f"--cert-dir={plane.folder}",
        f"--service-account-key-file={access.certificate}",
        f"--service-account-signing-key-file={plane.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={tokens}", "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
        f"--disable-admission-plugins={ADMISSION_OFF}", "--enable-priority-and-fairness=false",
        "--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
        "--delete-collection-workers=8", *plane.gates, *groups,
    ]  # fmt: skip
