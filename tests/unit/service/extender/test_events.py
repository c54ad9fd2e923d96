"""Events say how pods were scored, and nobody waits for them."""

import asyncio
import json

import pytest

from podium.service.extender.events import EventWriter, event_of
from podium.service.extender.history import summary
from support.extender import Asked
from support.kubelike import gpu_node, gpu_pod

NODES = [gpu_node("a"), gpu_node("b"), gpu_node("c", 1)]


def bound(asked, name="p", node="a", gpus=1, names=None):
    """Scores a pod and binds it; gives what is remembered of it."""
    pod = asked.wait(gpu_pod(name, gpus), name[:100])
    asked.prioritize(pod, names)
    asked.bind(pod, node)
    return asked.memory.history.of(name[:100])


@pytest.mark.parametrize(
    ("node", "gpus", "names", "said"),
    [
        ("a", 2, "abc",
         "best-fit preferred a (1,000 points) of 3 feasible nodes; next b (999 points); "
         "bound there"),
        ("b", 2, "abc",
         "best-fit preferred a (1,000 points) of 3 feasible nodes; next b (999 points); "
         "bound to b (999 points)"),
        ("c", 2, "abc",
         "best-fit preferred a (1,000 points) of 3 feasible nodes; next b (999 points); "
         "bound to c (0 points)"),
        ("c", 2, "a",
         "best-fit preferred a (1,000 points) of 1 feasible node; bound to c, "
         "which was not asked about"),
        ("a", 8, "ab",
         "best-fit preferred none of 2 feasible nodes: no room on any node that was asked about; "
         "bound to a (0 points)"),
    ],
)  # fmt: skip
def test_a_decision_is_summed_up_in_one_sentence(node, gpus, names, said):
    assert summary(bound(Asked(NODES), "p", node, gpus, list(names))) == said


def test_an_event_is_about_its_pod():
    event = event_of(bound(Asked(NODES)), 1_700_000_000.25)
    assert event["involvedObject"] == {
        "apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p", "uid": "p",
    }  # fmt: skip
    assert event["metadata"] == {
        "name": f"p.{1_700_000_000_250_000:x}", "namespace": "default",
    }  # fmt: skip
    assert (event["reason"], event["type"]) == ("PodiumScored", "Normal")
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2023-11-14T22:13:20Z"
    longest = event_of(bound(Asked(NODES), "x" * 253), 1_700_000_000.25)
    assert len(longest["metadata"]["name"]) == 253


class Server:
    """Takes Events, refuses them, or breaks down over them."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.written = []

    async def write(self, event):
        answer = self.answers.pop(0) if self.answers else ""
        if isinstance(answer, Exception):
            raise answer
        self.written.append(event["involvedObject"]["name"])
        return answer


def written(asked, server, names, **limits):
    """Binds pods, and lets the writer run until nothing waits; gives its outcomes."""

    async def run():
        writer = EventWriter(asked.metrics, asked.log.logger, pause_s=0.0, **limits)
        asked.verbs.on_bound = writer.bound
        for name in names:
            bound(asked, name)
        writing = asyncio.create_task(writer.run(server.write))
        for _ in range(200):
            await asyncio.sleep(0)
        writing.cancel()

    asyncio.run(run())
    return {labels[0]: value for labels, value in asked.counted("events_total").items()}


def test_each_bound_pod_gets_one_event():
    asked, server = Asked(NODES), Server()
    assert written(asked, server, ["p", "q"]) == {"written": 2}
    assert server.written == ["p", "q"]


def test_a_failure_is_counted_and_logged_and_the_next_pod_gets_its_event():
    asked, server = Asked(NODES), Server("you may not create events", ValueError("no"))
    assert written(asked, server, ["p", "q", "r"]) == {"failed": 2, "written": 1}
    logged = asked.logged()
    assert [each["message"] for each in logged] == ["an Event was not written"] * len(logged)
    assert "you may not create events" in json.dumps(logged)


def test_pods_beyond_the_queue_get_no_event_and_nobody_waits():
    asked, server = Asked(NODES), Server()
    counts = written(asked, server, ["p", "q", "r"], most_waiting=2)
    assert counts == {"written": 2, "dropped": 1}
