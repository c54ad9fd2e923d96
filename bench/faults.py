"""Plays faults against a real control plane on which Podium is installed as the chart does it.

    KUBEBUILDER_ASSETS=FOLDER python bench/faults.py [--only WORD]

Pods come while each fault lasts. Prints for each how many of them were bound, the longest that one
waited, and how long after the end of the fault a pod was scored again. A process that died is
started again at once, as the kubelet does.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from bad_answers import BAD_ANSWERS, front

from podium.kube.local.daemon import free_ports, running
from podium.kube.manifests import Installation, manifests, objects, scheduler_configuration
from support.account import FAULTS as CREDENTIALS
from support.account import account
from support.control_plane import ControlPlane, ProgramsMissingError, control_plane, find_programs
from support.extended import figure, wait_until
from support.kubelike import gpu_node, gpu_pod
from support.service import served
from support.tcp_proxy import tcp_proxy

INSTALLED = {"policy": "keep-room", "twin": True, "decisive_points": 1}
NODES = 20
AWAY_S = 3.0
GIVE_UP_S = 120.0
POLL_S = 0.01
MISSING = 3
ODD_CPU = "2"
NUMBERS = itertools.count()
NEUTRAL = 'podium_extender_neutral_total{reason="'
ANSWERED = 'podium_extender_duration_seconds_count{verb="prioritize"}'

RAISING = """
def score(pod, node):
    return 1.0 / (2000 - pod.cpu_milli) - node.cpu_milli_left
"""
ENDLESS = """
def score(pod, node):
    total = 0.0
    while pod.cpu_milli == 2000:
        total += 1.0
    return total - node.cpu_milli_left
"""
SLOW = """
import math

def score(pod, node):
    total = 0.0
    if pod.cpu_milli == 2000:
        for number in range(20000000):
            total += math.sin(number)
    return total - node.cpu_milli_left
"""


class Waits(NamedTuple):
    """Says what pods saw of a fault."""

    pods: int
    bound: int
    longest_s: float


class Outcome(NamedTuple):
    """Says what pods saw of a fault, and when one was scored again."""

    waits: Waits
    recovery_s: float


@dataclass(frozen=True)
class Stage:
    """Is a cluster with nodes, and a folder for what Podium writes."""

    plane: ControlPlane
    folder: Path
    kept: ExitStack = field(default_factory=ExitStack)  # what must outlive its fault

    @contextmanager
    def podium(self, *flags: str, **settings: object) -> Iterator[Any]:
        """Runs Podium as it is installed."""
        given = {**INSTALLED, "kubeconfig": self.plane.kubeconfig, **settings}
        with served(self.folder, *flags, **environment(given)) as process:
            yield process

    @contextmanager
    def scheduler(self, url: str, **more: object) -> Iterator[int]:
        """Runs kube-scheduler as it is installed; gives its port."""
        with self.plane.scheduler({**scheduler_configuration(url), **more}) as port:
            yield port

    @contextmanager
    def both(self, *flags: str, **settings: object) -> Iterator[Any]:
        """Runs Podium and the kube-scheduler that asks it, until a pod is scored and from then."""
        with self.podium(*flags, **settings) as process, self.scheduler(process.url):
            self.plane.api.forget_connections()  # idle ones may have been dropped meanwhile
            self.recovery_s(process)
            yield process

    def burst(self, count: int = 20, cpu: str = "1") -> Waits:
        """Makes pods; waits until they are bound, or for as long as there is patience."""
        pods = [gpu_pod(f"pod-{next(NUMBERS):05}") for _ in range(count)]
        for each in pods:
            for amounts in each["spec"]["containers"][0]["resources"].values():
                amounts["cpu"] = cpu
        names = {each["metadata"]["name"] for each in pods}
        began_s, longest_s, bound = time.monotonic(), 0.0, 0
        self.plane.api.create_all(pods)
        while bound < count and longest_s < GIVE_UP_S:
            seen = [each for each in self.plane.api.pods() if each["metadata"]["name"] in names]
            bound = sum(bool(each["spec"].get("nodeName")) for each in seen)
            longest_s = time.monotonic() - began_s
            time.sleep(POLL_S)
        for each in pods:
            self.plane.api.delete(each)
        return Waits(count, bound, longest_s)

    def recovery_s(self, process: Any, since_s: float | None = None) -> float:
        """Makes pods one by one until Podium has scored one; gives the seconds that it took."""
        began_s = time.monotonic() if since_s is None else since_s
        while time.monotonic() - began_s < GIVE_UP_S:
            with contextlib.suppress(OSError):
                before = scored(process)
                self.burst(1)
                if scored(process) > before:
                    return time.monotonic() - began_s
        return float("inf")

    def policy(self, text: str) -> Path:
        """Writes a policy."""
        file = self.folder / "policy.py"
        file.write_text(text)
        return file

    @contextmanager
    def api_server_away(self) -> Iterator[None]:
        """Kills kube-apiserver, and starts another after the block."""
        self.plane.stop_api_server()
        self.plane.api.forget_connections()
        yield
        self.plane.start_api_server()


def environment(settings: dict[str, object]) -> dict[str, str]:
    """Writes the settings of the extender as a process reads them."""
    named = {f"PODIUM_EXTENDER_{name.upper()}": str(value) for name, value in settings.items()}
    return {"PODIUM_SERVE_COMPONENTS": "extender", **named}


def scored(process: Any) -> float:
    """Counts the answers that preferred some node."""
    lines = process.get("/metrics").body.decode().splitlines()
    neutral = (line for line in lines if line.startswith(NEUTRAL) and "prioritize" in line)
    return figure(process, ANSWERED) - sum(float(line.rpartition(" ")[2]) for line in neutral)


@contextmanager
def bursting(stage: Stage, count: int) -> Iterator[list[Waits]]:
    """Makes pods beside the block; afterwards the list has what they saw."""
    found: list[Waits] = []
    thread = threading.Thread(target=lambda: found.append(stage.burst(count)))
    thread.start()
    try:
        yield found
    finally:
        thread.join()


def pid_of(argument: str) -> int:
    """Finds the program that was started with an argument."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if argument.encode() in file.read_bytes().split(b"\0"):
                return int(file.parent.name)
    raise LookupError(argument)


def kill(stage: Stage) -> Outcome:
    """Ends Podium in the middle of a burst; another is started."""
    with stage.both() as process, bursting(stage, 60) as waits:
        time.sleep(0.2)
        process.end(signal.SIGKILL)
        since_s = time.monotonic()
        with stage.podium("--port", str(urlsplit(process.url).port)) as again:
            recovery_s = stage.recovery_s(again, since_s)
    return Outcome(waits[0], recovery_s)


def stop(stage: Stage) -> Outcome:
    """Lets Podium hang in the middle of a burst."""
    with stage.both() as process, bursting(stage, 60) as waits:
        process.process.send_signal(signal.SIGSTOP)
        time.sleep(AWAY_S)
        process.process.send_signal(signal.SIGCONT)
        recovery_s = stage.recovery_s(process)
    return Outcome(waits[0], recovery_s)


def answer_badly(stage: Stage) -> Outcome:
    """Spoils answers between the two, in every way in turn."""
    seen = []
    with (
        stage.podium() as process,
        front(process.url) as between,
        stage.scheduler(between.url),
    ):
        stage.recovery_s(process)
        for between.spoil in BAD_ANSWERS.values():
            seen.append(stage.burst(5))
        between.spoil = None
        recovery_s = stage.recovery_s(process)
    pods, bound, longest_s = zip(*seen, strict=True)
    return Outcome(Waits(sum(pods), sum(bound), max(longest_s)), recovery_s)


def kill_api_server(stage: Stage) -> Outcome:
    """Ends kube-apiserver for three seconds."""
    with stage.both() as process:
        with stage.api_server_away():
            time.sleep(AWAY_S)
        since_s = time.monotonic()
        return Outcome(stage.burst(), stage.recovery_s(process, since_s))


def kill_etcd(stage: Stage) -> Outcome:
    """Ends etcd for three seconds."""
    pid = pid_of(f"--data-dir={stage.plane.folder / 'etcd'}")
    command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
    with stage.both() as process:
        os.kill(pid, signal.SIGKILL)
        time.sleep(AWAY_S)
        etcd = stage.kept.enter_context(running([*command], stage.plane.log("etcd")))
        etcd.wait_until_ready(stage.plane.etcd_port)
        since_s = time.monotonic()
        recovery_s = stage.recovery_s(process, since_s)
        return Outcome(stage.burst(), recovery_s)


def compact(stage: Stage) -> Outcome:
    """Cuts Podium off; meanwhile nodes change, etcd forgets, and kube-apiserver begins anew."""
    api = stage.plane.api
    with (
        account(stage.plane, stage.folder) as reader,
        tcp_proxy(stage.plane.access.port) as proxy,
        stage.both(kubeconfig=reader.kubeconfig(proxy.port)) as process,
    ):
        proxy.is_open = False
        proxy.cut()
        api.create(gpu_node("late"))
        stage.plane.compact()
        with stage.api_server_away():
            pass
        waits = stage.burst()
        proxy.is_open = True
        since_s = time.monotonic()
        wait_until(lambda: figure(process, "podium_extender_nodes") == NODES + 1)
        recovery_s = stage.recovery_s(process, since_s)
    api.delete(gpu_node("late"))
    return Outcome(waits, recovery_s)


def start_too_early(stage: Stage) -> Outcome:
    """Starts Podium while there is no kube-apiserver."""
    (port,) = free_ports(1)
    with ExitStack() as stack:
        started: list[Any] = []

        def start() -> None:
            started.append(stack.enter_context(stage.podium("--port", str(port))))

        with stage.api_server_away():
            thread = threading.Thread(target=start)
            thread.start()
            wait_until(lambda: is_listening(port))
            time.sleep(AWAY_S)
        since_s = time.monotonic()
        thread.join()
        ready_s = time.monotonic() - since_s
        with stage.scheduler(started[0].url):
            return Outcome(stage.burst(), ready_s)


def is_listening(port: int) -> bool:
    """Tells whether somebody takes connections at a port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def spoil_credentials(name: str) -> Callable[[Stage], Outcome]:
    """Has the API server refuse what Podium shows it, for four seconds."""

    def play(stage: Stage) -> Outcome:
        with (
            account(stage.plane, stage.folder) as reader,
            tcp_proxy(stage.plane.access.port) as proxy,
            stage.both(
                kubeconfig=reader.kubeconfig(proxy.port, is_plugin=name == "plugin")
            ) as process,
        ):
            trouble = CREDENTIALS[name](reader)
            trouble.begin()
            proxy.cut()
            waits = stage.burst()
            time.sleep(AWAY_S)
            trouble.end()
            since_s = time.monotonic()
            wait_until(lambda: figure(process, "podium_extender_failing_watches") == 0)
            return Outcome(waits, stage.recovery_s(process, since_s))

    return play


def leader_election() -> dict[str, Any]:
    """Gives how the kube-schedulers of the chart elect a leader."""
    data = [each.get("data", {}) for each in objects(manifests(Installation()))]
    (text,) = [each["config.yaml"] for each in data if "config.yaml" in each]
    return dict(yaml.safe_load(text)["leaderElection"])


def lose_the_leader(stage: Stage) -> Outcome:
    """Ends the leader of two replicas, kube-scheduler and Podium."""
    lease = {**leader_election(), "resourceNamespace": "default"}
    with (
        stage.podium() as first,
        stage.podium() as second,
        stage.scheduler(first.url, leaderElection=lease) as port,
    ):
        stage.recovery_s(first)
        with stage.scheduler(second.url, leaderElection=lease):
            os.kill(pid_of(f"--secure-port={port}"), signal.SIGKILL)
            first.end(signal.SIGKILL)
            since_s = time.monotonic()
            return Outcome(stage.burst(), stage.recovery_s(second, since_s))


def misbehave(text: str) -> Callable[[Stage], Outcome]:
    """Gives some pods to a policy that cannot take them."""

    def play(stage: Stage) -> Outcome:
        with stage.both(policy=stage.policy(text)) as process:
            waits = stage.burst(10, ODD_CPU)
            return Outcome(waits, stage.recovery_s(process))

    return play


def break_the_file(stage: Stage) -> Outcome:
    """Breaks the file of a policy that runs."""
    with stage.both(policy=stage.policy(RAISING)) as process:
        stage.policy("def score(pod, node:\n")
        return Outcome(stage.burst(), stage.recovery_s(process))


def lose_the_store(stage: Stage) -> Outcome:
    """Starts Podium with a store that cannot be written."""
    with (
        stage.podium("--store", "/dev/full/podium.db") as process,
        stage.scheduler(process.url),
    ):
        since_s = time.monotonic()
        return Outcome(stage.burst(), stage.recovery_s(process, since_s))


FAULTS: dict[str, Callable[[Stage], Outcome]] = {
    "Podium is killed in a burst": kill,
    "Podium hangs for 3 s in a burst": stop,
    f"{len(BAD_ANSWERS)} kinds of bad answers": answer_badly,
    "kube-apiserver is killed, 3 s away": kill_api_server,
    "etcd is killed, 3 s away": kill_etcd,
    "cut off, compacted, kube-apiserver anew": compact,
    "Podium starts before kube-apiserver": start_too_early,
    "token refused, its file missing": spoil_credentials("token-file"),
    "token refused, exec plugin fails once": spoil_credentials("plugin"),
    "rights taken away": spoil_credentials("rights"),
    "leader of two replicas is killed": lose_the_leader,
    "policy raises for some pods": misbehave(RAISING),
    "policy is slow for some pods": misbehave(SLOW),
    "policy never ends for some pods": misbehave(ENDLESS),
    "file of the policy is broken": break_the_file,
    "store cannot be written": lose_the_store,
}


def played(stage: Stage, play: Callable[[Stage], Outcome]) -> str:
    """Plays a fault; gives the cells of its row."""
    waits, recovery_s = play(stage)
    seen = f"{waits.bound} of {waits.pods} bound, {waits.longest_s:.1f} s"
    return f"{seen} | {recovery_s:.1f}"


def main() -> int:
    """Prints a row for each fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="play faults whose names have this word")
    given = parser.parse_args()
    try:
        programs = find_programs()
    except ProgramsMissingError as error:
        print(f"error: {error}", file=sys.stderr)
        return MISSING
    print("| fault | pods, and the longest until all were bound | scored again after (s) |")
    print("|---|---|---|")
    with control_plane(programs) as plane, tempfile.TemporaryDirectory() as folder:
        plane.api.create_all([gpu_node(f"node-{number:02}", 8) for number in range(NODES)])
        stage = Stage(plane, Path(folder))
        with stage.kept:
            for name, play in FAULTS.items():
                if given.only in name:
                    print(f"| {name} | {played(stage, play)} |", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
