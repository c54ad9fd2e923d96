"""Runs Podium as the extender of a real kube-scheduler."""

import contextlib
import time

from podium.kube.manifests import scheduler_configuration
from support.kube_api import POLL_S
from support.service import served
from support.threaded_service import served_in_thread

WEIGHT = 200
"""One place in the order outweighs all plugins of kube-scheduler together, which give 1,200."""

ANSWER_S = 180.0


def configuration(url, **more):
    """Writes what an administrator writes to use the extender; the profile stays as it is."""
    extender = {
        "urlPrefix": f"{url}/extender",
        "prioritizeVerb": "prioritize",
        "weight": WEIGHT,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "30s",  # however busy the machine is
        **more,
    }
    return {
        "percentageOfNodesToScore": 100,
        "profiles": [{"schedulerName": "default-scheduler"}],
        "extenders": [extender],
    }


def as_installed(url):
    """Writes the configuration that the chart installs; only a busy machine may be slower."""
    found = scheduler_configuration(url)
    for each in found.get("extenders", ()):
        each["httpTimeout"] = "30s"
    return found


@contextlib.contextmanager
def podium(plane, folder, **settings):
    """Runs Podium as the extender of a control plane, in a thread of this process.

    No policy is late, however busy the machine is.
    """
    with served_in_thread(folder, **environ_of(plane, max_answer_s=30, **settings)) as service:
        yield service


@contextlib.contextmanager
def podium_process(plane, folder, *flags, **settings):
    """Runs Podium as the extender of a control plane, in a process that can be killed."""
    with served(folder, *flags, **environ_of(plane, **settings)) as process:
        yield process


def environ_of(plane, **settings):
    """Writes the settings of an extender as variables of the environment."""
    given = {"kubeconfig": plane.kubeconfig, **settings}
    own = {f"PODIUM_EXTENDER_{name.upper()}": str(value) for name, value in given.items()}
    return {"PODIUM_SERVE_COMPONENTS": "extender", **own}


def wait_until_decided(api, pods, bound=None):
    """Waits until so many pods are bound, or all; gives the node of each that is."""
    wanted = len(pods) if bound is None else bound
    deadline = time.monotonic() + ANSWER_S
    while True:
        seen = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in api.pods()}
        found = {name: seen[name] for pod in pods if seen.get(name := pod["metadata"]["name"])}
        if len(found) >= wanted:
            return found
        assert time.monotonic() < deadline, f"{len(found)} of {wanted} pods were bound"
        time.sleep(POLL_S)


def figure(process, line):
    """Reads one figure."""
    for each in process.get("/metrics").body.decode().splitlines():
        name, _, value = each.rpartition(" ")
        if name == line:
            return float(value)
    return 0.0


def wait_until(is_so):
    """Waits until something is so."""
    deadline = time.monotonic() + ANSWER_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(POLL_S)


def difference(expected, found):
    """Lists the pods that are elsewhere than they should be, or nowhere."""
    return {
        name: (expected.get(name, "nowhere"), found.get(name, "nowhere"))
        for name in expected | found
        if expected.get(name) != found.get(name)
    }
