"""Whoever cannot reach a cluster is told why, and what to do."""

import asyncio
import gc
import json
import os
import signal
import threading

import pytest

from podium.errors import InputError, MissingError, MissingExtra, UnknownName
from podium.kube import access as access_module
from podium.kube.access import Access, Target
from podium.kube.client import KubeClient, KubeError
from podium.kube.local.daemon import free_ports
from podium.kube.resources import RESOURCES, served
from support.fake_api import fake_api, kubeconfig, listed, status


@pytest.fixture(autouse=True)
def homeless(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def loaded(target, **environ):
    access = Access(target, environ=environ)
    asyncio.run(access.load())
    return access


def test_the_kubeconfig_that_is_named_counts(tmp_path):
    file = kubeconfig(tmp_path, 1234)
    assert loaded(Target(file)).url == "http://127.0.0.1:1234"
    assert loaded(Target(), KUBECONFIG=str(file)).url == "http://127.0.0.1:1234"
    assert loaded(Target(file, "fake"), KUBECONFIG="/none").url == "http://127.0.0.1:1234"


def test_a_kubeconfig_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingError, match="there is no such kubeconfig"):
        Access(Target(tmp_path / "none"), environ={})
    with pytest.raises(MissingError, match="KUBECONFIG=/none") as missing:
        Access(Target(), environ={"KUBECONFIG": "/none"})
    assert missing.value.exit_code == 3
    with pytest.raises(MissingError, match="no cluster is configured") as missing:
        Access(Target(), environ={})
    assert "--kubeconfig" in missing.value.hint


def test_a_context_that_is_not_there_is_corrected(tmp_path):
    with pytest.raises(UnknownName, match='unknown context "fkae"') as unknown:
        loaded(Target(kubeconfig(tmp_path, 1), "fkae"))
    assert unknown.value.hint == "did you mean fake"


@pytest.mark.parametrize(
    "text",
    ["", "just words", "root:x:0:0:root:/root:/bin/bash\n", "{", "[1, 2]",
     "contexts: 3", "{contexts: [{name: a}]}",
     "{contexts: [{name: a, context: {cluster: b, user: c}}], current-context: a}",
     "{contexts: [{name: a, context: {cluster: b, user: c}}], clusters: [], users: [],"
     " current-context: a}"],
)  # fmt: skip
def test_what_is_no_kubeconfig_is_said_to_be_none(tmp_path, text):
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        loaded(Target(file))
    assert str(file) in str(error.value)
    assert "' object" not in str(error.value)  # what Python says of it helps nobody


def test_files_that_a_kubeconfig_names_must_be_there(tmp_path):
    file = kubeconfig(tmp_path, 1)
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"] = {
        "server": "https://127.0.0.1:1", "certificate-authority": "/none/ca.crt",
    }  # fmt: skip
    file.write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"the kubeconfig cannot be used: .*/none/ca\.crt"):
        loaded(Target(file))


def test_a_server_that_is_not_there_is_named(tmp_path):
    (port,) = free_ports(1)

    async def ask():
        async with KubeClient(Access(Target(kubeconfig(tmp_path, port)), environ={})) as client:
            await served(client)

    with pytest.raises(KubeError, match="the cluster does not answer") as error:
        asyncio.run(ask())
    assert error.value.exit_code == 3
    assert f"http://127.0.0.1:{port}" in error.value.where
    assert "--context" in error.value.hint
    assert "secret-token" not in f"{error.value} {error.value.hint}"


def test_kinds_are_told_apart_by_their_group():
    names = [resource.name for resource in RESOURCES]
    assert len(set(names)) == len(names)
    assert RESOURCES[0].path() == "/api/v1/nodes"
    by_name = {resource.name: resource for resource in RESOURCES}
    group = by_name["PodGroup.scheduling.volcano.sh"]
    assert group.path("ml") == "/apis/scheduling.volcano.sh/v1/namespaces/ml/podgroups"


def test_the_extra_that_is_missing_is_named_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr("podium.kube.extra.MODULES", ("a_module_that_is_not_there",))
    with pytest.raises(MissingExtra, match="talking to a cluster needs the extra 'kube'") as error:
        Access(Target(), environ={})
    assert "install" in error.value.hint


def test_credentials_that_have_expired_are_read_again_once(tmp_path):
    async def ask():
        async with fake_api() as api:
            file, token = kubeconfig(tmp_path, api.port), tmp_path / "token"
            config = json.loads(file.read_text())
            config["users"][0]["user"] = {"tokenFile": str(token)}
            file.write_text(json.dumps(config))
            token.write_text("old")
            async with KubeClient(Access(Target(file), environ={})) as client:
                token.write_text("new")
                api.lists = [status(401), status(401), listed()]
                await asyncio.gather(client.get("/api/v1/pods"), client.get("/api/v1/nodes"))
                api.lists = [status(401)]
                with pytest.raises(KubeError, match="does not accept the credentials"):
                    await client.get("/api/v1/pods")
            return api.credentials

    sent = asyncio.run(ask())
    assert sent == ["Bearer old"] * 2 + ["Bearer new"] * 4


def changed(folder, cluster=None, user=None):
    """Writes a kubeconfig with another cluster or user."""
    file = kubeconfig(folder, 1)
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"] = cluster or config["clusters"][0]["cluster"]
    config["users"][0]["user"] = user or config["users"][0]["user"]
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize(
    "server", [5, "", "host", "ftp://host", "http://", "http://[::1", "http://host:99999", [1], {}]
)
def test_a_server_that_is_no_address_is_said_to_be_none(tmp_path, server):
    file = changed(tmp_path, {"server": server})
    with pytest.raises(InputError, match="the kubeconfig") as error:
        loaded(Target(file))
    assert error.value.exit_code == 2


def test_a_password_in_an_address_is_refused_and_never_shown(tmp_path):
    file = changed(tmp_path, {"server": "http://user:hunter2@127.0.0.1:1"})
    with pytest.raises(InputError, match="has a password in its address") as error:
        loaded(Target(file))
    assert "hunter2" not in f"{error.value} {error.value.where} {error.value.hint}"


def test_a_kubeconfig_of_aliases_that_stand_for_gigabytes_is_refused(tmp_path):
    file = tmp_path / "kubeconfig"
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    file.write_text("\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *levels]))
    with pytest.raises(InputError, match="aliases"):
        loaded(Target(file))


# The library keeps the process to itself, and warns when it is gone.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_plugin_that_hangs_is_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(access_module, "PLUGIN_S", 1.0)
    pid, hanging = tmp_path / "pid", 'echo $$ > "$0"; exec sleep 30'
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", hanging, str(pid)],
    }
    file = changed(tmp_path, user={"exec": plugin})
    with pytest.raises(MissingError, match=r"did not come within 1 s") as error:
        loaded(Target(file))
    assert "exec:" in error.value.hint
    del error
    os.kill(int(pid.read_text()), signal.SIGKILL)
    for thread in threading.enumerate():
        if thread.name.startswith("asyncio-waitpid"):
            thread.join()
    gc.collect()
