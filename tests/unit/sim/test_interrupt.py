"""Holds ctrl-C to its promise: a run ends, or is whole; it never goes on with a made-up score."""

# ruff: noqa: ARG001, ARG002 - the signatures of policies are given

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import ClusterPolicy, from_function
from podium.sim import Rounds, Setup, simulate
from podium.sim.interrupt import deferred_interrupt, insistent, unbroken

CLUSTER = Cluster.of(NodeSpec(f"node-{i}", 1000 + i, 1000) for i in range(60))
WORKLOAD = Workload.of(PodSpec(f"pod-{i}", 10 + i % 40, 10) for i in range(400))
PYTHON = Setup(tier="python")


def fullest(pod, node):
    return -node.cpu_milli_left


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def interrupting(pod, node):
    interrupt()
    return 0


def endless(pod, node):
    threading.Timer(0.05, interrupt).start()
    while True:
        pass


class Interrupting:
    def __init__(self, seed):
        self.calls = 0

    def choose(self, pod, nodes, feasible):
        self.calls += 1
        if self.calls == 2:
            interrupt()
        return int(np.flatnonzero(feasible)[0])


def run(policy, setup=PYTHON):
    return simulate(CLUSTER, WORKLOAD, policy, Rounds(), setup)


@pytest.mark.parametrize("function", [interrupting, endless])
def test_a_run_in_plain_python_ends_at_once(function):
    with pytest.raises(KeyboardInterrupt):
        run(from_function(function))


def test_a_cluster_policy_is_not_asked_again():
    with pytest.raises(KeyboardInterrupt):
        run(ClusterPolicy("interrupting", Interrupting))


def test_the_handler_of_the_caller_is_back_after_a_run():
    before = signal.getsignal(signal.SIGINT)
    run(from_function(fullest))
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_at_any_moment_ends_the_run_or_leaves_it_whole(monkeypatch):
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    policy = from_function(fullest)
    digest = run(policy).digest
    interrupted = 0
    for step in range(150):
        timer = threading.Timer(step * 1e-4, interrupt)
        try:
            timer.start()
            assert run(policy).digest == digest
            timer.join()
            time.sleep(1e-3)  # until the handler has run
        except KeyboardInterrupt:
            interrupted += 1
    assert interrupted > 0
    # Finalizers and the like may drop one too, outside the core, where it does no harm.
    assert [each for each in lost if "ctypes callback" in str(each.err_msg)] == []


def test_machine_code_is_interrupted_when_it_returns():
    stopped = []

    def work():
        with deferred_interrupt(stopped.append):
            interrupt()
            stopped.append("ended")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert stopped[1:] == ["ended"]


def test_a_short_compilation_ends_before_it_is_interrupted():
    steps = []

    def work():
        with unbroken():
            interrupt()
            steps.append("compiled")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["compiled"]


class Dropping:
    """Does its work in a finalizer, where exceptions are dropped."""

    def __del__(self):
        interrupt()


def test_a_long_compilation_is_interrupted_at_once_even_where_that_is_dropped(monkeypatch):
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    def work(steps):
        with insistent():
            steps.append("begun")
            Dropping()
            steps.append("dropped")

    def work_at_once(steps):
        with insistent():
            interrupt()
            steps.append("never")

    steps = []
    with pytest.raises(KeyboardInterrupt):
        work(steps)
    with pytest.raises(KeyboardInterrupt):
        work_at_once(steps)
    assert steps == ["begun", "dropped"]
    assert len(dropped) == 1


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        run(from_function(interrupting))
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_than_the_first_leaves_signals_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(run(from_function(fullest)).digest))
    thread.start()
    thread.join()
    assert found == [run(from_function(fullest)).digest]
