"""Runs Podium as the extender of a real kube-scheduler."""

import contextlib
import time

from podium.kube.manifests import scheduler_configuration
from support.kube_api import POLL_S
from support.service import served

WEIGHT = 200
"""One place in the order outweighs all plugins of kube-scheduler together, which give 1,200."""

ANSWER_S = 60.0


def configuration(url, **more):
    """Writes what an administrator writes to use the extender; the profile stays as it is."""
    extender = {
        "urlPrefix": f"{url}/extender",
        "prioritizeVerb": "prioritize",
        "weight": WEIGHT,
        "nodeCacheCapable": True,
        "ignorable": True,
        "httpTimeout": "2s",
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
        each["httpTimeout"] = "2s"
    return found


@contextlib.contextmanager
def podium(plane, folder, *flags, **settings):
    """Runs Podium as the extender of a control plane."""
    settings = {"kubeconfig": plane.kubeconfig, **settings}
    given = {f"PODIUM_EXTENDER_{name.upper()}": str(value) for name, value in settings.items()}
    with served(folder, *flags, PODIUM_SERVE_COMPONENTS="extender", **given) as process:
        yield process


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
