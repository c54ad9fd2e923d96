"""Machine code that several processes kept must not be mixed up when one process reads it."""

import os
import subprocess
import sys

import pytest

NAMES = ("worst-fit", "compact", "balanced", "funsearch-4816")

KEEP = "from podium.policies import load; load({name!r}).native(1, 8)"

COMPARE = """
import sys
import numpy as np
from podium.model import NODE_8, POD, Cluster, NodeSpec, PodSpec, Workload
from podium.model.records import node_view, pod_view
from podium.policies import load
from podium.policies.abi import CALLBACK

nodes = Cluster.of([NodeSpec("n", 64000, 262144, 4, "T4")]).nodes
nodes["cpu_milli_left"], nodes["memory_mib_left"] = 41000, 99000
nodes["gpu_milli_left"][0, :4] = 1000, 300, 0, 1000
pods = Workload.of([PodSpec("p", 3000, 9000, 1, 250)]).pods
for name in sys.argv[1:]:
    policy = load(name)
    native = policy.native(1, 8)
    assert native.owner[0].cache_hits == 1, "not read from disk"
    call = CALLBACK(native.address)
    found = call(pods.ctypes.data, nodes.ctypes.data, -1, 0, 0, 0)
    wanted = float(policy.function(pod_view(pods[0]), node_view(nodes[0])))
    assert found == wanted, (name, found, wanted)
"""


@pytest.mark.deep
def test_policies_kept_by_separate_processes_stay_themselves_in_one(tmp_path):
    environment = {**os.environ, "PODIUM_COMPILE_CACHE": str(tmp_path)}
    for name in NAMES:
        run(["-c", KEEP.format(name=name)], environment)
    run(["-c", COMPARE, *NAMES], environment)


def run(arguments, environment):
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
