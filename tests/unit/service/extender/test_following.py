"""The cluster that is followed is told of in the log, where something is wrong with it."""

import asyncio
import io
import json

from podium.kube import LiveState
from podium.service.extender import following
from podium.service.extender.following import follow_cluster
from podium.service.http.logs import Log
from podium.settings import load_settings
from support.fake_api import fake_api, kubeconfig, listed
from support.kubelike import gpu_node, gpu_pod, live


def test_a_node_that_cannot_be_modelled_is_logged_once(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "SAID_S", 0.05)
    lines = io.StringIO()
    log = Log(lines)

    async def whole():
        async with fake_api() as api:
            api.lists = [listed(), listed(gpu_node("large", 17)), listed(gpu_node("large", 17))]
            config = kubeconfig(tmp_path, api.port)
            settings = load_settings(
                {"extender.kubeconfig": str(config)}, environ={}, folder=tmp_path
            )
            async with follow_cluster(settings, LiveState(), log.logger), asyncio.timeout(20):
                while "17" not in lines.getvalue():
                    await asyncio.sleep(0.01)
                await asyncio.sleep(3 * following.SAID_S)  # time to say it twice

    asyncio.run(whole())
    log.close()
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    named = [each for each in told if each["message"].startswith("a node cannot be modelled")]
    assert [each["node"] for each in named] == ["large"]
    assert "0 to 16 whole GPUs" in named[0]["problem"]


def test_an_object_that_cannot_be_read_is_logged_once_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "SAID_S", 0.05)
    lines = io.StringIO()
    log = Log(lines)

    async def whole():
        async with fake_api() as api:
            odd = {"metadata": {"name": "odd", "namespace": "ml"}, "spec": 7}
            api.lists = [listed(), listed(odd), listed(live(gpu_pod("p"), "u"))]
            config = kubeconfig(tmp_path, api.port)
            settings = load_settings(
                {"extender.kubeconfig": str(config)}, environ={}, folder=tmp_path
            )
            async with follow_cluster(settings, LiveState(), log.logger) as cluster:
                async with asyncio.timeout(20):
                    while not cluster.unreadable() or "ml/odd" not in lines.getvalue():
                        await asyncio.sleep(0.01)
                await asyncio.sleep(3 * following.SAID_S)  # time to say it twice
                return cluster.unreadable(), cluster.problems()

    counted = asyncio.run(whole())
    log.close()
    told = [json.loads(line) for line in lines.getvalue().splitlines()]
    named = [each for each in told if each["message"].startswith("an object cannot be read")]
    assert counted == (1, [])
    assert [each["object"].partition(" ")[2] for each in named] == ["ml/odd"]
