"""A snapshot holds what can be read, and says what cannot."""

import asyncio
import gzip
import json

import pytest

from podium.kube import client as client_module
from podium.kube.access import Access, Target
from podium.kube.client import KubeClient, KubeError
from podium.kube.resources import NODES, PODS, served
from podium.kube.snapshot import take_snapshot
from support.fake_api import Answer, fake_api, kubeconfig, listed
from support.kubelike import gpu_pod, live


def asking(folder, answers, ask):
    async def whole():
        async with fake_api() as api:
            api.lists = list(answers)
            access = Access(Target(kubeconfig(folder, api.port)), environ={})
            async with KubeClient(access) as client:
                return await ask(client)

    return asyncio.run(whole())


def snapshot(folder, answers, resources=(PODS,)):
    return asking(
        folder, answers, lambda client: take_snapshot(client, resources, "", lambda *_: None)
    )


@pytest.mark.parametrize("levels", [150, 1700])
def test_one_odd_object_is_left_out_and_named(tmp_path, levels):
    nested = '{"a":' * levels + "1" + "}" * levels
    odd = f'{{"metadata": {{"name": "odd", "namespace": "ml"}}, "spec": {{"affinity": {nested}}}}}'
    good = json.dumps(live(gpu_pod("good"), "g"))
    page = f'{{"metadata": {{"resourceVersion": "1"}}, "items": [{odd}, {odd}, {good}]}}'
    taken = snapshot(tmp_path, [Answer([page.encode()])])
    assert [each["metadata"]["name"] for each in taken.objects] == ["good"]
    assert taken.counts == {"Pod": 1}
    assert taken.notes == [
        "pods that cannot be read are not in it: ml/odd: it is nested too deeply, and 1 more"
    ]


def test_an_object_of_another_shape_does_not_cost_the_others(tmp_path):
    odd = {"metadata": {"name": "odd"}, "spec": 7}
    taken = snapshot(tmp_path, [listed(odd, live(gpu_pod("good"), "g"))])
    assert [each["metadata"]["name"] for each in taken.objects] == ["good"]
    assert "odd: Expected `object`, got `int`" in taken.notes[0]


@pytest.mark.parametrize("garbage", [b"<html>", b"[]", b'{"groups": 3}', b'{"groups": [{}]}'])
def test_a_server_that_does_not_say_which_kinds_it_has_is_told_apart(tmp_path, garbage):
    with pytest.raises(KubeError, match="the cluster does not say which kinds it has"):
        asking(tmp_path, [Answer([garbage])], served)


def test_whoever_may_not_ask_which_kinds_there_are_is_told_what_to_allow(tmp_path):
    with pytest.raises(KubeError) as caught:
        asking(tmp_path, [Answer([b"{}"], status=403)], served)
    assert caught.value.hint.endswith('nonResourceURLs: ["/apis"], verbs: ["get"]')


def test_nodes_and_pods_are_told_apart(tmp_path):
    taken = snapshot(tmp_path, [listed(), listed(live(gpu_pod("p"), "u"))], (NODES, PODS))
    assert taken.counts == {"Pod": 1}


# Answers without end.


def test_an_answer_has_a_bound_in_bytes_also_once_it_is_decompressed(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "LARGEST_PAGE", 1 << 20)
    packed = gzip.compress(b'{"metadata":{},"items":[' + b" " * (8 << 20) + b"]}")
    bomb = Answer([packed], headers={"Content-Encoding": "gzip"})
    with pytest.raises(KubeError, match="is larger than 1,048,576 bytes"):
        snapshot(tmp_path, [bomb])
    endless = Answer([b" " * (1 << 18)] * 50)
    with pytest.raises(KubeError, match="is larger than 1,048,576 bytes"):
        snapshot(tmp_path, [endless])


def test_an_answer_that_comes_byte_by_byte_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "REPLY_S", 0.2)
    with pytest.raises(KubeError, match="it takes too long"):
        snapshot(tmp_path, [Answer([b" ", 0.05] * 100)])


def test_pages_that_never_end_are_given_up(tmp_path, monkeypatch):
    with pytest.raises(KubeError, match="a list of the cluster has no end"):
        snapshot(tmp_path, [listed(more="same")])
    monkeypatch.setattr(client_module, "MOST_PAGES", 20)
    pages = [listed(more=f"page-{number}") for number in range(100)]
    with pytest.raises(KubeError, match="it goes on after 20 pages"):
        snapshot(tmp_path, pages)
