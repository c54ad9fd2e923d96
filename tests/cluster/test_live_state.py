"""A live state stays true to a real API server, whatever happens to the connection."""

import asyncio
import gc
import warnings
from contextlib import contextmanager

import pytest

from podium.kube.client import KubeError
from support.control_plane import GANGS, control_plane, find_programs
from support.following import agrees, following, write_kubeconfig
from support.kubelike import gpu_node, gpu_pod, group
from support.manifests import bound
from support.tcp_proxy import tcp_proxy


@pytest.fixture(scope="module")
def plane():
    """Runs a control plane of its own, which tests may stop and start."""
    with control_plane(find_programs(), GANGS) as started:
        yield started


@pytest.fixture
def proxy(plane):
    with tcp_proxy(plane.access.port) as proxy:
        yield proxy


@pytest.fixture
def kubeconfig(plane, proxy, tmp_path):
    return write_kubeconfig(tmp_path, plane.access, port=proxy.port)


def play(work):
    """Runs a scenario; connections that break off while they are opened or closed are collected.

    CPython 3.11 leaves some of them to the garbage collector, which warns of each.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(work)
        gc.collect()


def settle_in(api):
    """Makes three nodes, pods that run on them and pods that wait."""
    api.create_all([gpu_node(f"n{i}") for i in range(3)])
    api.create_all([bound(gpu_pod(f"runs-{i}", 1), f"n{i % 3}") for i in range(6)])
    api.create_all([gpu_pod(f"waits-{i}", 2) for i in range(3)])


async def go_on(api, name):
    """Lets a pod come, another run, and others go."""

    def change():
        leaving = api.pods("default")[:2]
        api.create(bound(gpu_pod(f"{name}-new", 2), "n1"))
        api.create(gpu_node(f"{name}-node", 8))
        for gone in leaving:
            api.delete({"kind": "Pod", "apiVersion": "v1", "metadata": gone["metadata"]})

    await asyncio.to_thread(change)


def test_events_and_lists_tell_the_same(plane, api):
    async def scenario():
        settle_in(api)
        async with following(plane.kubeconfig) as (state, watch):
            heard = []
            state.subscribe(lambda uid, node: heard.append((uid, node)))
            await agrees(state, api)
            assert (len(state.index), len(state.pending)) == (3, 3)
            for turn in range(5):
                await go_on(api, f"turn-{turn}")
                await agrees(state, api)
            bound_pods = [uid for uid, node in heard if node == "n1"]
            assert len(bound_pods) == 5
            assert all(each.lists == 1 for each in watch.health().values())
            assert watch.age_s < 60

    play(scenario())


def test_pod_groups_are_seen(plane, api):
    async def scenario():
        async with following(plane.kubeconfig) as (state, _):
            made = api.create(gpu_pod("member", 1, schedulingGroup={"podGroupName": "train"}))
            api.create(group("train", 4))
            for _ in range(5000):
                pod = state.pod(made["metadata"]["uid"])
                gang = pod and state.gang_of(pod)
                if gang is not None and gang.rule.minimum == 4:
                    return
                await asyncio.sleep(0.02)
            raise AssertionError(gang)

    play(scenario())


def test_a_watch_that_breaks_is_resumed_where_it_was(api, proxy, kubeconfig):
    async def scenario():
        settle_in(api)
        async with following(kubeconfig) as (state, watch):
            for turn in range(5):
                proxy.cut()
                await go_on(api, f"cut-{turn}")
                await agrees(state, api)
            health = watch.health()
            assert (health["Pod"].lists, health["Node"].lists) == (1, 1)
            assert health["Pod"].watches > 3

    play(scenario())


async def begun(watch, watches):
    """Waits until every watch was begun so many times."""
    for _ in range(5000):
        if all(each.watches >= watches for each in watch.health().values()):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(watch.health())


def test_a_watch_that_falls_silent_is_given_up(api, proxy, kubeconfig):
    async def scenario():
        settle_in(api)
        async with following(kubeconfig) as (state, watch):
            await begun(watch, 1)
            for each in watch.reflectors.values():
                each.silence_s = 1.0
            proxy.cut()  # so that the new patience holds
            await begun(watch, 2)
            proxy.silence()
            await go_on(api, "silent")
            await agrees(state, api)
            assert watch.health()["Pod"].failures > 0

    play(scenario())


@contextmanager
def stopped(plane):
    plane.stop_api_server()
    plane.api.forget_connections()
    yield
    plane.start_api_server()


def test_a_server_that_starts_anew_is_found_again(plane, api, kubeconfig):
    async def scenario():
        settle_in(api)
        async with following(kubeconfig) as (state, watch):
            await agrees(state, api)
            with stopped(plane):
                await asyncio.sleep(0.5)
            await go_on(api, "restarted")
            await agrees(state, api)
            assert watch.is_synced

    play(scenario())


def test_what_went_while_nobody_looked_is_found_by_a_new_list(plane, api, tmp_path):
    async def scenario():
        settle_in(api)
        with tcp_proxy(plane.access.port) as proxy:
            kubeconfig = write_kubeconfig(tmp_path, plane.access, port=proxy.port)
            async with following(kubeconfig) as (state, watch):
                heard = []
                state.subscribe(lambda uid, node: heard.append((uid, node)))
                await agrees(state, api)
                proxy.is_open = False
                proxy.cut()
                await go_on(api, "compacted")
                plane.compact()
                # What the server remembers of events is gone as well.
                with stopped(plane):
                    pass
                proxy.is_open = True
                await agrees(state, api)
                assert watch.health()["Pod"].lists == 2
                assert len([uid for uid, node in heard if not node]) == 2

    play(scenario())


READER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "reader"},
    "rules": [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}],
}
READING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "reading"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "guest"}],
}


def test_rights_to_nodes_and_pods_are_enough(plane, api, tmp_path):
    kubeconfig = write_kubeconfig(tmp_path, plane.access, token=plane.guest_token)

    async def refused():
        async with following(kubeconfig):
            pass

    async def allowed():
        settle_in(api)
        async with following(kubeconfig) as (state, watch):
            await agrees(state, api)
            assert any("you may not list podgroups" in text for text in watch.refused())

    # Whichever of the two is answered first.
    expected = r'you may not list (nodes|pods): .*"guest" cannot list'
    with pytest.raises(KubeError, match=expected) as error:
        play(refused())
    assert '"], verbs: ["get", "list", "watch"]' in error.value.hint
    api.create(READER)
    api.create(READING)
    try:
        play(allowed())
    finally:
        api.delete(READING)
        api.delete(READER)


def test_who_is_not_known_is_told_so(plane, tmp_path):
    kubeconfig = write_kubeconfig(tmp_path, plane.access, token="expired")

    async def scenario():
        async with following(kubeconfig):
            pass

    with pytest.raises(KubeError, match="does not accept the credentials"):
        play(scenario())
