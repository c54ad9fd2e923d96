"""A hiccup of credentials is no end: they are read again until they are good."""

import asyncio
import json
import os
import ssl
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from kubernetes_asyncio.config import incluster_config

from podium.kube import LiveState
from podium.kube import access as access_module
from podium.kube.access import Access, Target
from podium.kube.client import KubeClient, KubeError
from podium.kube.feed import Feed
from podium.kube.local.certificate import make_certificate
from podium.kube.record import Recorder
from podium.kube.resources import PODS
from podium.kube.watch import ClusterWatch
from podium.traces.kubernetes.recording import load_recording
from support.fake_api import Answer, fake_api, kubeconfig, listed, status
from support.kubelike import gpu_pod, live

PATIENCE_S = 120.0
BEFORE, AFTER = (live(gpu_pod(name, 1), name) for name in ("before", "after"))

PLUGIN = """#!/bin/sh
if [ -e {folder}/fails ]; then echo "sso session expired" >&2; exit 1; fi
printf '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
printf ' "status": {{"token": "%s"}}}}' "$(cat {folder}/token)"
"""


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    monkeypatch.setattr(access_module, "RENEWAL_S", 0.01)


async def until(is_so):
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


def as_user(file, **user):
    return changed(file, users=[{"name": "me", "user": user}])


def changed(file, **parts):
    file.write_text(json.dumps({**json.loads(file.read_text()), **parts}))
    return file


def with_token_file(folder, port):
    (folder / "token").write_text("first")
    return as_user(kubeconfig(folder, port), tokenFile=str(folder / "token"))


def with_plugin(folder, port):
    (folder / "token").write_text("first")
    plugin = folder / "plugin"
    plugin.write_text(PLUGIN.format(folder=folder))
    plugin.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return as_user(kubeconfig(folder, port), exec={"apiVersion": version, "command": str(plugin)})


def with_token(folder, port):
    return as_user(kubeconfig(folder, port), token="first")


async def briefly(_):
    await asyncio.sleep(0.01)


def watching(file, sink):
    return watching_with(Access(Target(file), environ={}), sink)


@asynccontextmanager
async def watching_with(access, sink):
    async with (
        KubeClient(access) as client,
        ClusterWatch(client, sink, [PODS], sleep=briefly) as watch,
    ):
        await asyncio.wait_for(watch.synced(), PATIENCE_S)
        yield watch


def refuse(api):
    """Accepts a new token alone, and shows another pod to whoever has it."""
    api.accepts = "Bearer second"
    api.lists = [listed(AFTER, version="9")]
    api.watches = [status(410), Answer([30.0])]
    api.cut()


FAULTS = {
    "token-file-missing": (
        with_token_file, lambda folder: (folder / "token").unlink(), "No such file",
    ),
    "token-file-empty": (
        with_token_file, lambda folder: (folder / "token").write_text(""), "not accept",
    ),
    "token-file-blank": (
        with_token_file, lambda folder: (folder / "token").write_text("\n"), "no token",
    ),
    "token-file-of-several-lines": (
        with_token_file, lambda folder: (folder / "token").write_text("a\nb"), "no token",
    ),
    "token-file-of-bytes": (
        with_token_file, lambda folder: (folder / "token").write_bytes(b"\xff\xfe"), "decode",
    ),
    "token-file-half-written": (
        with_token_file, lambda folder: (folder / "token").write_text("seco"), "not accept",
    ),
    "plugin-fails": (with_plugin, lambda folder: (folder / "fails").touch(), "sso session expired"),
    "plugin-gives-nothing": (
        with_plugin, lambda folder: (folder / "token").write_text(""), "no token",
    ),
    "kubeconfig-missing": (
        with_token, lambda folder: (folder / "kubeconfig").unlink(), "kubeconfig",
    ),
    "kubeconfig-half-written": (
        with_token, lambda folder: (folder / "kubeconfig").write_text('{"clus'), "no kubeconfig",
    ),
    "kubeconfig-without-the-context": (
        with_token, lambda folder: changed(folder / "kubeconfig", contexts=[
            {"name": "other", "context": {"cluster": "fake", "user": "me"}}
        ]), "unknown context",
    ),
    "kubeconfig-of-a-server-that-is-away": (
        with_token, lambda folder: changed(folder / "kubeconfig", clusters=[
            {"name": "fake", "cluster": {"server": "http://127.0.0.1:1"}}
        ]), "does not answer",
    ),
    "kubeconfig-of-no-address": (
        with_token, lambda folder: changed(folder / "kubeconfig", clusters=[
            {"name": "fake", "cluster": {"server": "nowhere"}}
        ]), "no address",
    ),
}  # fmt: skip


def mend(configured, folder, port):
    (folder / "fails").unlink(missing_ok=True)
    (folder / "token").write_text("second\n")
    if configured is with_token:
        as_user(kubeconfig(folder, port), token="second")


def problem_of(watch):
    return "; ".join(watch.problems())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_watch_outlives_credentials_that_are_bad_for_a_while(tmp_path, fault):
    configured, breaks, said = FAULTS[fault]

    async def whole():
        async with fake_api() as api:
            api.accepts, api.lists = "Bearer first", [listed(BEFORE)]
            state = LiveState()
            async with watching(configured(tmp_path, api.port), Feed(state)) as watch:
                breaks(tmp_path)
                refuse(api)
                await until(lambda: said in problem_of(watch))
                refusals = watch.health()["Pod"].failures
                await until(lambda: watch.health()["Pod"].failures > refusals + 3)
                assert watch.failure is None
                mend(configured, tmp_path, api.port)
                await until(lambda: "after" in state.pods)
                await until(lambda: not watch.problems())
                assert watch.age_s < PATIENCE_S

    asyncio.run(whole())


@pytest.mark.parametrize("fault", ["token-file-missing", "plugin-fails"])
def test_a_recording_outlives_them_too(tmp_path, fault):
    configured, breaks, said = FAULTS[fault]
    file = tmp_path / "cluster.jsonl"

    async def whole(recorder):
        async with fake_api() as api:
            api.accepts, api.lists = "Bearer first", [listed(BEFORE)]
            async with watching(configured(tmp_path, api.port), recorder) as watch:
                breaks(tmp_path)
                refuse(api)
                await until(lambda: said in problem_of(watch))
                watch.check()
                mend(configured, tmp_path, api.port)
                await until(lambda: b'"after"' in file.read_bytes())
                watch.check()

    with Recorder(file) as recorder:
        asyncio.run(whole(recorder))
    assert set(load_recording(file).pods) == {"before", "after"}


@pytest.mark.parametrize("fault", ["token-file-missing", "plugin-fails", "kubeconfig-half-written"])
def test_a_single_request_says_what_is_wrong(tmp_path, fault):
    configured, breaks, said = FAULTS[fault]

    async def whole():
        async with (
            fake_api() as api,
            KubeClient(Access(Target(configured(tmp_path, api.port)))) as client,
        ):
            breaks(tmp_path)
            refuse(api)
            with pytest.raises(KubeError, match=said) as error:
                await client.post("/api/v1/namespaces/a/events", b"{}")
            assert error.value.status == 401
            mend(configured, tmp_path, api.port)
            await asyncio.sleep(0.02)
            await client.post("/api/v1/namespaces/a/events", b"{}")
            assert api.credentials[-1] == "Bearer second"

    asyncio.run(whole())


def test_many_who_are_refused_ask_a_plugin_once(tmp_path, monkeypatch):
    monkeypatch.setattr(access_module, "RENEWAL_S", 60.0)

    async def whole():
        async with fake_api() as api:
            file = with_plugin(tmp_path, api.port)
            plugin = tmp_path / "plugin"
            counting = f"echo asked >> {tmp_path}/asked"
            plugin.write_text(plugin.read_text().replace("\n", f"\n{counting}\n", 1))
            async with KubeClient(Access(Target(file), environ={})) as client:
                (tmp_path / "fails").touch()
                refuse(api)
                for _ in range(3):
                    asked = [client.get(f"/api/v1/{kind}") for kind in ("pods", "nodes", "jobs")]
                    found = await asyncio.gather(*asked, return_exceptions=True)
                    assert all("sso session expired" in str(each) for each in found), found

    asyncio.run(whole())
    assert (tmp_path / "asked").read_text().splitlines() == ["asked"] * 2  # at first, and again


def test_whoever_is_taken_for_nobody_reads_the_credentials_again(tmp_path):
    """An API server that lets anybody ask says 403, and not 401, to an empty token."""

    async def whole():
        async with fake_api() as api:
            file = with_token_file(tmp_path, api.port)
            (tmp_path / "token").write_text("")
            nobody = status(403, 'nodes is forbidden: User "system:anonymous" cannot list')
            api.lists = [nobody, nobody, nobody, listed()]
            async with KubeClient(Access(Target(file), environ={})) as client:
                with pytest.raises(KubeError, match="anonymous"):
                    await client.get("/api/v1/nodes")
                (tmp_path / "token").write_text("second")
                await asyncio.sleep(0.02)
                await client.get("/api/v1/nodes")
            assert api.credentials == ["Bearer second"]

    asyncio.run(whole())


def test_another_current_context_is_not_meant_by_who_runs_already(tmp_path):
    async def whole():
        async with fake_api() as api:
            file = with_token(tmp_path, api.port)
            async with KubeClient(Access(Target(file), environ={})) as client:
                config = json.loads(file.read_text())
                other = {"name": "other", "context": {"cluster": "far", "user": "me"}}
                far = {"name": "far", "cluster": {"server": "http://127.0.0.1:1"}}
                changed(
                    file,
                    contexts=[*config["contexts"], other],
                    clusters=[*config["clusters"], far],
                    users=[{"name": "me", "user": {"token": "second"}}],
                    **{"current-context": "other"},
                )
                refuse(api)
                await client.get("/api/v1/pods")
                assert client.url == f"http://127.0.0.1:{api.port}"
                assert api.credentials[-1] == "Bearer second"

    asyncio.run(whole())


def test_a_server_that_moves_is_found_where_the_kubeconfig_says(tmp_path):
    async def whole():
        state = LiveState()
        async with fake_api() as old:
            old.lists = [listed(BEFORE)]
            file = with_token(tmp_path, old.port)
            moving = watching(file, Feed(state))
            watch = await moving.__aenter__()
        try:
            await until(lambda: "does not answer" in problem_of(watch))
            async with fake_api() as new:
                new.lists, new.watches = [listed(AFTER, version="9")], [status(410), Answer([30.0])]
                with_token(tmp_path, new.port)
                await until(lambda: "after" in state.pods)
                assert set(state.pods) == {"after"}
                assert watch.failure is None
        finally:
            await moving.__aexit__(None, None, None)

    asyncio.run(whole())


# Certificates.


def identity(folder, name):
    (folder / name).mkdir()
    return make_certificate(folder / name)


def server_of(identity, clients=None):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=clients)
    context.load_cert_chain(*identity)
    context.verify_mode = ssl.CERT_REQUIRED if clients else ssl.CERT_NONE
    return context


def over_tls(folder, port, **user):
    file = kubeconfig(folder, port)
    server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(folder / "ca")}
    return as_user(changed(file, clusters=[{"name": "fake", "cluster": server}]), **user)


@pytest.mark.parametrize("meanwhile", ["old", "missing", "half-written"])
def test_a_certificate_authority_that_is_replaced_is_trusted_once_it_is_there(tmp_path, meanwhile):
    one, two = identity(tmp_path, "one"), identity(tmp_path, "two")
    trusted = tmp_path / "ca"
    trusted.write_bytes(one[0].read_bytes())

    async def whole():
        state = LiveState()
        async with fake_api(tls=server_of(one)) as api:
            api.lists = [listed(BEFORE)]
            moving = watching(over_tls(tmp_path, api.port, token="first"), Feed(state))
            watch = await moving.__aenter__()
        try:
            if meanwhile == "missing":
                trusted.unlink()
            elif meanwhile == "half-written":
                trusted.write_bytes(two[0].read_bytes()[:100])
            said = {"old": "not trusted", "missing": "ca", "half-written": "certificate"}
            async with fake_api(api.port, server_of(two)) as new:
                new.lists, new.watches = [listed(AFTER, version="9")], [status(410), Answer([30.0])]
                await until(lambda: said[meanwhile] in problem_of(watch))
                failures = watch.health()["Pod"].failures
                await until(lambda: watch.health()["Pod"].failures > failures + 3)
                trusted.write_bytes(two[0].read_bytes())
                await until(lambda: "after" in state.pods)
                assert set(state.pods) == {"after"}
                assert watch.failure is None
        finally:
            await moving.__aexit__(None, None, None)

    asyncio.run(whole())


def test_a_client_certificate_that_is_replaced_is_shown_once_it_is_there(tmp_path):
    server = identity(tmp_path, "server")
    one, two = identity(tmp_path, "one"), identity(tmp_path, "two")
    (tmp_path / "ca").write_bytes(server[0].read_bytes())
    user = {"client-certificate": str(tmp_path / "cert"), "client-key": str(tmp_path / "key")}

    def show(files):
        for name, file in zip(("cert", "key"), files, strict=True):
            (tmp_path / name).write_bytes(file.read_bytes())

    async def whole():
        state = LiveState()
        show(one)
        async with fake_api(tls=server_of(server, one[0])) as api:
            api.lists = [listed(BEFORE)]
            moving = watching(over_tls(tmp_path, api.port, **user), Feed(state))
            watch = await moving.__aenter__()
        try:
            async with fake_api(api.port, server_of(server, two[0])) as new:
                new.lists, new.watches = [listed(AFTER, version="9")], [status(410), Answer([30.0])]
                failures = watch.health()["Pod"].failures
                await until(lambda: watch.health()["Pod"].failures > failures + 3)
                show(two)
                await until(lambda: "after" in state.pods)
                assert set(state.pods) == {"after"}
                assert watch.failure is None
        finally:
            await moving.__aexit__(None, None, None)

    asyncio.run(whole())


# The service account of a pod.


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """Makes this process look like one of a pod; gives what its API server shows."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(access_module, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    made = identity(tmp_path, "server")
    (tmp_path / "ca").write_bytes(made[0].read_bytes())
    (tmp_path / "token").write_text("first")
    return server_of(made)


@pytest.mark.parametrize("is_read_again", [False, True], ids=["refused", "before-it-is-refused"])
@pytest.mark.parametrize("spoilt", [None, "", "seco"], ids=["missing", "empty", "half-written"])
def test_a_pod_outlives_a_token_that_is_not_there(
    tmp_path, monkeypatch, pod, spoilt, is_read_again
):
    """The token is read every minute, and once it is refused."""
    if is_read_again:
        monkeypatch.setattr(incluster_config, "TOKEN_REFRESH_PERIOD", timedelta(0))

    async def whole():
        state = LiveState()
        async with fake_api(tls=pod) as api:
            api.accepts, api.lists = "Bearer first", [listed(BEFORE)]
            monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
            access = Access(Target(), environ=os.environ)
            async with watching_with(access, Feed(state)) as watch:
                if spoilt is None:
                    (tmp_path / "token").unlink()
                else:
                    (tmp_path / "token").write_text(spoilt)
                refuse(api)
                await until(lambda: watch.health()["Pod"].failures > 3)
                (tmp_path / "token").write_text("second")
                await until(lambda: "after" in state.pods)
                assert set(state.pods) == {"after"}
                assert watch.failure is None

    asyncio.run(whole())


# At the start a mistake is told at once.


@pytest.mark.parametrize(
    ("configured", "breaks", "said"),
    [
        (with_token_file, lambda folder: (folder / "token").unlink(), "cannot be read"),
        (with_plugin, lambda folder: (folder / "fails").touch(), "sso session expired"),
        (with_plugin, lambda folder: (folder / "plugin").chmod(0o644), "Permission denied"),
    ],
)
def test_at_the_start_they_are_an_error_at_once(tmp_path, caplog, configured, breaks, said):
    async def whole():
        async with fake_api() as api:
            file = configured(tmp_path, api.port)
            breaks(tmp_path)
            async with watching(file, Feed(LiveState())):
                pass

    with pytest.raises(Exception, match=said) as error:
        asyncio.run(whole())
    assert not isinstance(error.value, KubeError)
    assert not caplog.records  # it is told once, by whoever asked


def test_at_the_start_a_token_that_is_refused_is_an_error_at_once(tmp_path):
    async def whole():
        async with fake_api() as api:
            api.accepts = "Bearer other"
            file = with_token_file(tmp_path, api.port)
            async with KubeClient(Access(Target(file), environ={})) as client:
                (tmp_path / "token").unlink()
                async with ClusterWatch(client, Feed(LiveState()), [PODS]) as watch:
                    await watch.synced()

    with pytest.raises(KubeError, match="No such file"):
        asyncio.run(whole())
