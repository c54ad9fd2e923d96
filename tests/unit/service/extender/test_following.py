"""The cluster that is followed is told of in the log, where something is wrong with it."""

import asyncio
import io
import json

import pytest

from podium.kube import LiveState
from podium.kube.watch import ClusterWatch
from podium.service.extender import following
from podium.service.extender.following import follow_cluster
from podium.service.http.logs import Log
from podium.settings import load_settings
from support.fake_api import Answer, fake_api, kubeconfig, listed
from support.kubelike import gpu_node, gpu_pod, live

ROUNDS = 4
"""Of looking for problems: time enough to tell one twice."""

PATIENCE_S = 120.0
"""A busy machine takes longer; only a test that would never end is stopped by this."""


class Told:
    """Follows a cluster with such answers, and holds what was logged meanwhile."""

    def __init__(self, tmp_path, monkeypatch):
        self._folder, self._stream = tmp_path, io.StringIO()
        self._log = Log(self._stream)
        self._rounds, problems = asyncio.Queue(), ClusterWatch.problems

        def count_round(watch):
            self._rounds.put_nowait(None)
            return problems(watch)

        monkeypatch.setattr(ClusterWatch, "problems", count_round)
        monkeypatch.setattr(following, "SAID_S", 0.01)

    def lines(self, list_of, see=lambda _cluster: None, lists=None):
        """Lists what is logged until problems were looked for often enough, and what is seen."""
        seen = asyncio.run(self._follow(list_of, see, lists or [listed()]))
        self._log.limiter.flush()
        self._log.writer.close(PATIENCE_S)
        return [json.loads(line) for line in self._stream.getvalue().splitlines()], seen

    async def _follow(self, list_of, see, lists):
        async with fake_api() as api, asyncio.timeout(PATIENCE_S):
            api.list_of, api.lists = list_of, lists
            config = kubeconfig(self._folder, api.port)
            settings = load_settings(
                {"extender.kubeconfig": str(config)}, environ={}, folder=self._folder
            )
            async with follow_cluster(settings, LiveState(), self._log.logger) as cluster:
                for _ in range(ROUNDS):
                    await self._rounds.get()
                return see(cluster)


@pytest.fixture
def told(tmp_path, monkeypatch):
    return Told(tmp_path, monkeypatch)


def test_a_node_that_cannot_be_modelled_is_logged_once(told):
    lines, _ = told.lines({"nodes": listed(gpu_node("large", 17))})
    named = [each for each in lines if each["message"].startswith("a node cannot be modelled")]
    assert [each["node"] for each in named] == ["large"]
    assert "0 to 16 whole GPUs" in named[0]["problem"]


@pytest.mark.parametrize(
    "lists", [[listed()], [Answer(is_cut=True), listed()]], ids=["at once", "at the second attempt"]
)
def test_an_object_that_cannot_be_read_is_logged_once_and_counted(told, lists):
    odd = {"metadata": {"name": "odd", "namespace": "ml"}, "spec": 7}
    lines, counted = told.lines(
        {"pods": listed(odd, live(gpu_pod("p"), "u"))},
        lambda cluster: (cluster.unreadable(), cluster.problems(), cluster.failure),
        lists,
    )
    named = [each for each in lines if each["message"].startswith("an object cannot be read")]
    assert counted == (1, [], None)
    assert [each["object"] for each in named] == ["Pod ml/odd"]
