"""A reflector keeps on, whatever an API server answers."""

import asyncio
import json
import random
from contextlib import asynccontextmanager

import pytest

from podium.kube import LiveState
from podium.kube.access import Access, Target
from podium.kube.client import KubeClient
from podium.kube.feed import Feed
from podium.kube.reflector import Backoff, Reflector, SinkFull
from podium.kube.resources import PODS
from podium.kube.watch import ClusterWatch
from support.fake_api import Answer, event, fake_api, kubeconfig, listed, status
from support.kubelike import gpu_pod, live

PATIENCE_S = 120.0


def pod(name, version="1"):
    made = live(gpu_pod(name, 1), name)
    return {**made, "metadata": {**made["metadata"], "resourceVersion": version}}


def bookmark(version):
    return event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


class Follower:
    """Runs a reflector that never waits long, and notes how long it would have."""

    def __init__(self, reflector, state):
        self.reflector, self.state, self.waits = reflector, state, []

    async def sleep(self, wait_s):
        self.waits.append(wait_s)
        await asyncio.sleep(0.001)

    async def until(self, is_so):
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0.005)

    @property
    def names(self):
        return {pod.name for pod in self.state.pods.values()}


@asynccontextmanager
async def following(folder, api, alter):
    state = LiveState()
    async with KubeClient(Access(Target(kubeconfig(folder, api.port)), environ={})) as client:
        reflector = Reflector(client, PODS, Feed(state), random.Random(1), silence_s=0.3)
        follower = Follower(reflector, state)
        reflector.sleep = follower.sleep
        alter(reflector)
        task = asyncio.create_task(reflector.run())
        try:
            yield follower
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def scenario(tmp_path):
    """Runs a scenario with a server and a reflector that follows it."""

    def run(prepare, play, alter=lambda _: None):
        async def whole():
            async with fake_api() as api:
                prepare(api)
                async with following(tmp_path, api, alter) as follower:
                    await play(api, follower)

        asyncio.run(whole())

    return run


def test_pages_are_put_together_and_the_watch_begins_there(scenario):
    def prepare(api):
        api.lists = [listed(pod("a"), more="next"), listed(pod("b"), version="7")]
        api.watches = [Answer([event("ADDED", pod("c", "8")), 5.0])]

    async def play(api, follower):
        await follower.until(lambda: follower.names == {"a", "b", "c"})
        assert [each.get("continue") for each in api.asked["list"]] == [None, "next"]
        assert api.asked["watch"][0]["resourceVersion"] == "7"
        assert api.asked["watch"][0]["allowWatchBookmarks"] == "true"

    scenario(prepare, play)


def test_pages_that_grow_old_are_read_anew_all_at_once(scenario):
    def prepare(api):
        api.lists = [listed(pod("a"), more="next"), status(410), listed(pod("b"), version="9")]

    async def play(api, follower):
        await follower.until(lambda: follower.reflector.health.is_synced)
        assert follower.names == {"b"}
        assert "limit" not in api.asked["list"][-1]

    scenario(prepare, play)


def test_half_a_line_is_no_event_and_comes_again(scenario):
    whole = event("ADDED", pod("b", "6"))

    def prepare(api):
        api.lists = [listed(pod("a"), version="5")]
        api.watches = [
            Answer([event("ADDED", pod("x", "6")), whole[: len(whole) // 2]], is_cut=True),
            Answer([whole[:10], 0.05, whole[10:], 5.0]),
        ]

    async def play(api, follower):
        await follower.until(lambda: "b" in follower.names)
        assert api.asked["watch"][1]["resourceVersion"] == "6"
        assert (follower.names, follower.reflector.health.lists) == ({"a", "b", "x"}, 1)

    scenario(prepare, play)


@pytest.mark.parametrize(
    "garbage",
    [b"<html>bad gateway</html>\n", b'{"type": "ADDED"}\n', b"\xff\xfe\n", b"[1, 2]\n"],
)
def test_garbage_ends_the_watch_and_not_the_reflector(scenario, garbage):
    def prepare(api):
        api.lists = [listed(pod("a"), version="5")]
        api.watches = [Answer([garbage, 5.0]), Answer([event("ADDED", pod("b", "6")), 5.0])]

    async def play(api, follower):
        del api
        await follower.until(lambda: "b" in follower.names)
        assert follower.reflector.health.failures == 1

    scenario(prepare, play)


def test_one_odd_object_does_not_cost_the_others(scenario):
    odd = {"metadata": {"uid": 3, "name": ["odd"]}}

    def prepare(api):
        api.lists = [listed(odd, pod("a"), version="5")]
        api.watches = [Answer([event("ADDED", odd), event("ADDED", pod("b", "6")), 5.0])]

    async def play(api, follower):
        del api
        await follower.until(lambda: follower.names == {"a", "b"})
        assert follower.reflector.health.unreadable == 2

    scenario(prepare, play)


@pytest.mark.parametrize("how", ["answer", "event"])
def test_a_version_that_is_gone_leads_to_a_list_that_finds_what_has_left(scenario, how):
    said = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    gone = status(410) if how == "answer" else Answer([event("ERROR", said)])

    def prepare(api):
        api.lists = [listed(pod("a"), pod("b"), version="5"), listed(pod("b"), version="9")]
        api.watches = [gone, Answer([5.0])]

    async def play(api, follower):
        await follower.until(lambda: follower.names == {"b"})
        await follower.until(lambda: len(api.asked["watch"]) == 2)
        assert api.asked["watch"][1]["resourceVersion"] == "9"

    scenario(prepare, play)


def test_bookmarks_move_the_version_and_show_that_all_is_well(scenario):
    def prepare(api):
        api.lists = [listed(version="5")]
        api.watches = [Answer([bookmark("42")]), Answer([5.0])]

    async def play(api, follower):
        await follower.until(lambda: len(api.asked["watch"]) == 2)
        assert api.asked["watch"][1]["resourceVersion"] == "42"
        assert follower.reflector.health.heard_s is not None

    scenario(prepare, play)


def test_a_watch_of_which_nothing_comes_is_given_up(scenario):
    def prepare(api):
        api.lists = [listed(version="5")]
        api.watches = [Answer([60.0]), Answer([event("ADDED", pod("a", "6")), 5.0])]

    async def play(api, follower):
        await follower.until(lambda: "a" in follower.names)
        assert [each["resourceVersion"] for each in api.asked["watch"]] == ["5", "5"]
        assert len(api.asked["list"]) == 1

    scenario(prepare, play)


def test_a_very_long_line_is_read(scenario):
    large = pod("large", "6")
    large["metadata"]["annotations"] = {"note": "x" * 3_000_000}

    def prepare(api):
        api.watches = [Answer([event("ADDED", large), 5.0])]

    async def play(api, follower):
        await follower.until(lambda: follower.names == {"large"})
        assert len(api.asked["watch"]) == 1
        assert follower.reflector.health.failures == 0

    scenario(prepare, play)


def test_a_server_that_asks_to_wait_is_waited_for(scenario):
    def prepare(api):
        slow = Answer(status=429, headers={"Retry-After": "17"})
        api.lists = [slow, status(500), listed(pod("a"))]

    async def play(api, follower):
        del api
        await follower.until(lambda: follower.names == {"a"})
        assert follower.waits[0] == 17
        assert follower.waits[1] < 1

    scenario(prepare, play)


def test_kinds_that_may_not_be_read_are_asked_for_seldom(scenario):
    def prepare(api):
        api.lists = [status(403, 'User "me" cannot list'), status(404), listed(pod("a"))]

    async def play(api, follower):
        del api
        await follower.until(lambda: follower.names == {"a"})
        assert follower.waits[0] >= 0.5
        assert follower.waits[1] >= 1.0

    scenario(prepare, play)


def test_rights_that_are_lost_are_soon_asked_for_again(scenario):
    def prepare(api):
        api.lists = [listed(pod("a"), version="5")]
        api.watches = [*[status(403)] * 8, Answer([event("ADDED", pod("b", "6")), 5.0])]

    async def play(api, follower):
        del api
        await follower.until(lambda: follower.names == {"a", "b"})
        assert len(follower.waits) == 8
        assert max(follower.waits) <= 2.0

    scenario(prepare, play)


def test_a_watch_that_begins_again_is_news_before_anything_happens(scenario):
    now_s = [0.0]

    def prepare(api):
        api.lists = [listed(pod("a"), version="5")]
        api.watches = [status(500), Answer([30.0])]

    def alter(reflector):
        reflector.clock = lambda: now_s[0]
        sleep = reflector.sleep

        async def slept(wait_s):
            now_s[0] = 500.0
            await sleep(wait_s)

        reflector.sleep, reflector.silence_s = slept, 30.0

    async def play(api, follower):
        del api
        health = follower.reflector.health
        await follower.until(lambda: health.watches == 1 and health.problem is None)
        assert (health.heard_s, health.failures) == (500.0, 1)

    scenario(prepare, play, alter)


def test_waits_grow_to_a_limit_and_differ():
    backoff = Backoff(random.Random(1), first_s=0.25, most_s=4.0)
    waits = [backoff.next_s() for _ in range(40)]
    assert all(0.125 <= wait <= 4.0 for wait in waits)
    assert waits[0] <= 0.25
    assert min(waits[5:]) >= 2.0
    assert len(set(waits)) == 40
    backoff.reset()
    assert backoff.next_s() <= 0.25


# One object that nobody could read.


def deep(name, levels=1700):
    parameters = b'{"a":' * levels + b"1" + b"}" * levels
    return (
        b'{"metadata":{"name":"%s","namespace":"ml","uid":"%s","resourceVersion":"6"},"spec":'
        b'{"affinity":%s}}' % (name.encode(), name.encode(), parameters)
    )


@pytest.mark.parametrize("levels", [150, 1700, 30_000])
@pytest.mark.parametrize("way", ["list", "watch"])
def test_an_object_that_is_nested_too_deeply_is_left_out_and_named(scenario, levels, way):
    odd, before, after = deep("odd", levels), pod("a"), pod("b", "7")
    items = b'{"metadata":{"resourceVersion":"5"},"items":[%s,%s]}'
    added = b'{"type":"ADDED","object":%s}\n' % odd

    def prepare(api):
        listing = items % (json.dumps(before).encode(), odd)
        api.lists = [Answer([listing])] if way == "list" else [listed(before, version="5")]
        api.watches = [Answer([*([added] if way == "watch" else []), event("ADDED", after), 5.0])]

    async def play(api, follower):
        await follower.until(lambda: follower.names == {"a", "b"})
        health = follower.reflector.health
        assert (health.unreadable, health.failures, list(health.left_out)) == (1, 0, ["ml/odd"])
        assert "nested too deeply" in health.left_out["ml/odd"]
        assert len(api.asked["list"]) == 1

    scenario(prepare, play)


def test_whatever_a_sink_raises_is_put_down_to_the_object(scenario):
    def prepare(api):
        api.lists = [listed(pod("a"), pod("b"))]

    async def play(api, follower):
        del api
        await follower.until(lambda: follower.names == {"b"})
        assert follower.reflector.health.left_out == {"default/a": "TypeError('odd')"}

    def odd(reflector):
        apply = reflector.sink.apply

        def applied(resource, type_, raw):
            if b'"a"' in bytes(raw):
                raise TypeError("odd")
            return apply(resource, type_, raw)

        reflector.sink.apply = applied

    scenario(prepare, play, odd)


def test_a_reflector_that_fails_by_a_bug_says_so_and_goes_on(scenario, monkeypatch):
    def prepare(api):
        api.lists = [listed(pod("a"))]

    def broken(reflector):
        watch, calls = Reflector._watch, []

        async def watched(self):
            calls.append(self.health.problem)
            if len(calls) == 1:
                raise KeyError("bug")
            assert "KeyError: 'bug'" in str(calls[1])
            await watch(self)

        monkeypatch.setattr(Reflector, "_watch", watched)
        del reflector

    async def play(api, follower):
        await follower.until(lambda: len(api.asked["watch"]) == 1)
        assert follower.reflector.health.failures == 1

    scenario(prepare, play, broken)


def test_a_watch_that_has_ended_is_never_silent(tmp_path):
    class Full:
        """Takes nothing any more."""

        def apply(self, *_):
            raise SinkFull("the disk is full")

        def retain(self, *_):
            """Keeps nothing."""

    async def whole():
        async with fake_api() as api:
            api.lists = [listed(pod("a"))]
            access = Access(Target(kubeconfig(tmp_path, api.port)), environ={})
            async with (
                KubeClient(access) as client,
                ClusterWatch(client, Full(), [PODS]) as watch,
            ):
                with pytest.raises(SinkFull, match="the disk is full"):
                    await watch.synced()
                assert watch.age_s == float("inf")
                assert "the disk is full" in watch.problems()[0]
                assert isinstance(watch.failure, SinkFull)

    asyncio.run(whole())
