"""Makes service accounts whose credentials a real API server can be made to refuse."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.kube_api import KubeApi, KubeApiError

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
PATIENCE_S = 120.0
NUMBERS = itertools.count()

PLUGIN = """#!/bin/sh
if [ -e {folder}/fails-once ]; then rm {folder}/fails-once; echo "try again" >&2; exit 1; fi
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
printf ' "status": {{"token": "%s"}}}}' "$(cat {folder}/token)"
"""


class Account:
    """Is a service account with all rights, and the files of whoever uses it."""

    def __init__(self, plane: Any, folder: Path) -> None:
        self.plane, self.folder = plane, folder
        self.name = f"watcher-{next(NUMBERS)}"
        self.token_file = folder / "token"
        self.create()
        self.allow()

    def create(self) -> None:
        """Makes the account, and writes a token for it."""
        account = {"metadata": {"name": self.name}}
        self.plane.api.ask("POST", ACCOUNTS, account)
        spec = {"spec": {"expirationSeconds": 3600}}
        made = self.plane.api.ask("POST", f"{ACCOUNTS}/{self.name}/token", spec)
        self.token_file.write_text(made["status"]["token"])

    def allow(self) -> None:
        """Gives it all rights."""
        group = "rbac.authorization.k8s.io"
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": "default"}
        role = {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": self.name}, "subjects": [subject], "roleRef": role}
        self.plane.api.ask("POST", BINDINGS, binding)

    def forbid(self) -> None:
        """Takes its rights away."""
        self.plane.api.ask("DELETE", f"{BINDINGS}/{self.name}")
        self.wait_until_refused(403)

    def revoke(self) -> None:
        """Deletes the account; the API server remembers its tokens for some seconds."""
        self.plane.api.ask("DELETE", f"{ACCOUNTS}/{self.name}")
        self.wait_until_refused(401)

    def wait_until_refused(self, status: int) -> None:
        """Waits until whoever has the token is answered so."""
        access = replace(self.plane.access, token=self.token_file.read_text())
        deadline = time.monotonic() + PATIENCE_S
        with contextlib.closing(KubeApi(access)) as api:
            while time.monotonic() < deadline:
                try:
                    api.ask("GET", "/api/v1/nodes")
                except KubeApiError as error:
                    if error.status == status:
                        return
                time.sleep(0.1)
        raise TimeoutError(f"the token is not answered with {status}")

    def kubeconfig(self, port: int, *, is_plugin: bool = False) -> Path:
        """Writes a kubeconfig that has the token from a file, or from a plugin."""
        plugin, user = self.folder / "plugin", dict[str, Any](tokenFile=str(self.token_file))
        if is_plugin:
            plugin.write_text(PLUGIN.format(folder=self.folder))
            plugin.chmod(0o755)
            version = "client.authentication.k8s.io/v1"
            user = {"exec": {"apiVersion": version, "command": str(plugin)}}
        config = self.plane.access.kubeconfig()
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        config["users"][0]["user"] = user
        file = self.folder / "kubeconfig"
        file.write_text(json.dumps(config))
        return file


@contextmanager
def account(plane: Any, folder: Path) -> Iterator[Account]:
    """Gives an account for as long as the block."""
    made = Account(plane, folder)
    try:
        yield made
    finally:
        for path in (ACCOUNTS, BINDINGS):
            with suppress(KubeApiError):
                plane.api.ask("DELETE", f"{path}/{made.name}")


class Fault:
    """Is something that is wrong with credentials for a while."""

    def __init__(self, account: Account) -> None:
        self.account = account

    def begin(self) -> None:
        """Spoils the credentials of whoever asks from now on."""

    def end(self) -> None:
        """Makes them good again."""


class TokenFileMissing(Fault):
    """The token is refused, and the file that should have another is not there."""

    def begin(self) -> None:
        self.account.revoke()
        self.account.token_file.unlink()

    def end(self) -> None:
        self.account.create()


class PluginFails(Fault):
    """The token is refused, and the plugin that has another fails once."""

    def begin(self) -> None:
        self.account.revoke()
        self.account.create()
        (self.account.folder / "fails-once").touch()

    def end(self) -> None:
        """It has ended by itself, at the second attempt."""


class RightsMissing(Fault):
    """Everything is refused by a role that was taken away."""

    def begin(self) -> None:
        self.account.forbid()

    def end(self) -> None:
        self.account.allow()


FAULTS = {"token-file": TokenFileMissing, "plugin": PluginFails, "rights": RightsMissing}
