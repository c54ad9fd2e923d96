"""What Podium tells of a cluster is what its API objects add up to, while pods run and end."""

import os
import statistics
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.extended import configuration, podium, wait_until
from support.kubelike import gpu_node, gpu_pod

SIZES = (1, 2, 4, 8)
DURATION = "podium.dev/duration"


@pytest.fixture(autouse=True)
def kwok(plane):
    if not os.access(plane.programs / "kwok", os.X_OK):
        pytest.skip(f"{plane.programs} lacks kwok: `tools/build_control_plane.sh` builds it")
    with plane.kwok():
        yield


def sized(name, gpus, cpu, duration=""):
    """Writes a pod with a GiB for each of its CPUs that ends after a while, or not at all."""
    made = gpu_pod(name, gpus, {DURATION: duration} if duration else None)
    for part in ("requests", "limits"):
        resources = made["spec"]["containers"][0]["resources"][part]
        resources.update(cpu=str(cpu), memory=f"{cpu}Gi")
    return made


def of_one_cpu(made):
    for part in ("capacity", "allocatable"):
        made["status"][part].update(cpu="1", memory="1Gi")
    return made


def figures(process):
    """Reads all figures of the cluster, by name, scheduler and other labels."""
    text = process.get("/metrics").body.decode()
    found = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("podium_cluster_"):
            for sample in family.samples:
                labels = dict(sample.labels)
                scheduler = labels.pop("scheduler")
                name = sample.name.removeprefix("podium_cluster_")
                found[name, scheduler, *labels.values()] = sample.value
    return found


def asked(pod, name):
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    if name == "memory":
        return int(requests["memory"].removesuffix("Gi"))
    return int(requests.get(name, 0))


def left_on(node, pods):
    """Adds up what is left of a node: GPUs, CPUs, GiB."""
    has = node["status"]["allocatable"]
    total = (
        int(has.get("nvidia.com/gpu", 0)),
        int(has["cpu"]),
        int(has["memory"].removesuffix("Gi")),
    )
    here = [each for each in pods if each["spec"].get("nodeName") == node["metadata"]["name"]]
    names = "nvidia.com/gpu", "cpu", "memory"
    return tuple(
        amount - sum(asked(each, name) for each in here)
        for amount, name in zip(total, names, strict=True)
    )


def expected(api, made):
    """Works the figures out from the objects alone."""
    pods = [each for each in api.pods() if each["status"]["phase"] not in ("Succeeded", "Failed")]
    left = [left_on(node, pods) for node in api.nodes()]
    gpus = sum(int(each["status"]["allocatable"].get("nvidia.com/gpu", 0)) for each in api.nodes())
    free = sum(each[0] for each in left)
    with_gpu = [each for each in made if asked(each, "nvidia.com/gpu")]
    cpu, memory = (statistics.median(asked(each, name) for each in with_gpu)
                   for name in ("cpu", "memory"))  # fmt: skip
    rate = statistics.median(asked(each, "cpu") / asked(each, "nvidia.com/gpu")
                             for each in with_gpu)  # fmt: skip
    stranded = sum(g for g, c, m in left if c < cpu or m < memory)
    room = {size: sum(int(min(g // size, c // (size * rate), m // (size * rate)))
                      for g, c, m in left) for size in SIZES}  # fmt: skip
    waiting = Counter(asked(each, "nvidia.com/gpu") for each in pods
                      if not each["spec"].get("nodeName"))  # fmt: skip
    return {
        ("gpus", "cluster"): gpus,
        ("gpus_allocated", "cluster"): gpus - free,
        ("gpus_free", "cluster", "stranded"): stranded,
        ("gpus_free", "cluster", "broken"): 0,
        ("gpus_free", "cluster", "idle"): free - stranded,
        ("largest_pod_gpus", "cluster"): max(int(min(g, c // rate, m // rate)) for g, c, m in left),
        **{("fitting_pods", "cluster", str(size)): count for size, count in room.items()},
        **{("waiting_pods", "cluster", f"{size}-gpu", "default"): count
           for size, count in waiting.items()},
    }  # fmt: skip


def agree(process, api, made):
    found, sums = figures(process), expected(api, made)
    return sums.items() <= found.items()


def test_figures_are_what_the_objects_add_up_to(plane, api, tmp_path):
    nodes = [gpu_node(f"node-{number}", (2, 4, 8)[number % 3]) for number in range(6)]
    nodes.append(of_one_cpu(gpu_node("starved", 2)))  # one of its GPUs stays free, whatever comes
    ending = [sized(f"ending-{i}", 1 + i % 2, 1 + i % 2, "3s") for i in range(6)]
    lasting = [sized(f"lasting-{i}", (1, 2, 4)[i % 3], (1, 2, 7)[i % 3]) for i in range(12)]
    large = [sized(f"large-{i}", 8, 8) for i in range(4)]
    made = [*ending, *lasting, *large]
    api.create_all(nodes)
    api.create_all(ending)
    settings = {"policy": "fed-gpu", "shadow": "worst-fit", "twin": True}
    with podium(plane, tmp_path, **settings) as process:
        with plane.scheduler(configuration(process.url)):
            wait_until(lambda: all("nodeName" in each["spec"] for each in api.pods()))
            api.create_all([*lasting, *large])
            wait_until(lambda: ended(api) == len(ending))
            wait_until(lambda: agree(process, api, made))
            found, bound = (
                figures(process),
                len([p for p in api.pods() if p["spec"].get("nodeName")]),
            )
        assert found["waiting_pods", "cluster", "8-gpu", "default"] > 0
        assert found["gpus_free", "cluster", "stranded"] > 0
        waited = {key: value for key, value in found.items() if key[0] == "wait_seconds_count"}
        assert sum(value for key, value in waited.items() if key[1] == "cluster") == bound
        assert {key[1] for key in found} == {"cluster", "worst-fit (shadow)", "policy", "baseline"}
        for scheduler in ("worst-fit (shadow)", "policy", "baseline"):
            assert found["gpus", scheduler] == found["gpus", "cluster"]
            assert 0 < found["gpus_allocated", scheduler] <= found["gpus", scheduler]
        for each in api.pods():
            api.delete({"kind": "Pod", "apiVersion": "v1", "metadata": each["metadata"]})
        wait_until(lambda: agree(process, api, made) and not any(held(process)))


def ended(api):
    return sum(each["status"]["phase"] == "Succeeded" for each in api.pods())


def held(process):
    found = figures(process).items()
    return [value for key, value in found if key[0] in ("gpus_allocated", "waiting_pods")]
