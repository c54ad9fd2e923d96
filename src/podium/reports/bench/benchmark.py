"""Measures speed and memory: medians after a warm-up, each with a reference from the same run."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Shapes, Workload
from podium.policies import PairPolicy, Policy, load
from podium.reports.bench import process
from podium.reports.bench.cases import (
    SEED,
    constrained_case,
    dense_workload,
    fresh_policy,
    half_full,
    openb_case,
    uniform_cluster,
)
from podium.reports.bench.measurement import Measurement
from podium.sim import Inflation, Replay, Setup, simulate

if TYPE_CHECKING:
    from podium.sim.stepping import VectorEnvironment

    Finish = Callable[[VectorEnvironment], None]

REPEATS = 5

Measure = Callable[[str, Path | None], Measurement]


def measure_all(folder: Path | None, wanted: list[str]) -> Iterator[Measurement]:
    """Measures the wanted figures, one at a time."""
    for name in wanted:
        yield MEASURES[name](name, folder)


def _openb_16(name: str, folder: Path | None) -> Measurement:
    return _throughput(name, *openb_case("openb:16", folder), 2_000_000)


def _openb_1213(name: str, folder: Path | None) -> Measurement:
    return _throughput(name, *openb_case("openb", folder), 700_000)


def _constrained(name: str, folder: Path | None) -> Measurement:
    policy = load("best-fit")
    plain, bound = openb_case("openb", folder), constrained_case(folder)
    rates = [(_rate(*bound, policy, "auto"), _rate(*plain, policy, "auto")) for _ in range(REPEATS)]
    fast, reference = (statistics.median(column) for column in zip(*rates, strict=True))
    return Measurement(
        name, fast, "decisions/s", 350_000, False, reference, "without constraints"
    )  # fmt: skip


def _dense(nodes: int, alive: int, target: float) -> Measure:
    def measure(name: str, _folder: Path | None) -> Measurement:
        return _throughput(name, uniform_cluster(nodes), dense_workload(alive), target)

    return measure


def _throughput(name: str, cluster: Cluster, workload: Workload, target: float) -> Measurement:
    policy = load("best-fit")
    fast = statistics.median(_rate(cluster, workload, policy, "auto") for _ in range(REPEATS))
    # Every node scored for every pod; on large clusters of the first pods only.
    few = workload.taken(np.arange(min(len(workload), max(200, 10_000_000 // len(cluster)))))
    other = "scan" if len(cluster) > 64 else "python"
    return Measurement(
        name,
        fast,
        "decisions/s",
        target,
        False,
        _rate(cluster, few, policy, other),
        f"{other} tier",
    )


def _rate(cluster: Cluster, workload: Workload, policy: Policy, tier: str) -> float:
    setup = Setup(tier=tier)  # type: ignore[arg-type]
    result = simulate(cluster, workload, policy, Replay(), setup)
    return result.decisions / result.wall_s


def _replay_16(name: str, folder: Path | None) -> Measurement:
    case, policy = openb_case("openb:16", folder), load("best-fit")
    slow = timed(lambda: simulate(*case, policy, Replay(), Setup(tier="python")), 3)
    fast = timed(lambda: simulate(*case, policy), 4 * REPEATS)
    return Measurement(name, fast, "s", 0.005, True, slow, "python tier")


def _fgd_inflation(name: str, folder: Path | None) -> Measurement:
    case, policy = openb_case("openb", folder), load("fgd")
    slow = timed(lambda: simulate(*case, policy, Inflation(), Setup(SEED, "scan")), 1)
    fast = timed(lambda: simulate(*case, policy, Inflation(), Setup(SEED)))
    return Measurement(name, fast, "s", 0.6, True, slow, "scan tier")


def _random_ties(name: str, _folder: Path | None) -> Measurement:
    case = uniform_cluster(4_000), dense_workload(20_000, 20_000)
    first = timed(lambda: simulate(*case, load("fgd"), Inflation(), Setup(SEED)), 1)
    drawn = timed(lambda: simulate(*case, load("kube-default"), Inflation(), Setup(SEED)), 1)
    return Measurement(name, drawn, "s", 3.0, True, first, "fgd")


def _steps(name: str, folder: Path | None) -> Measurement:
    from podium.sim.stepping import VectorEnvironment, stepped_plan

    case = openb_case("openb:16", folder)
    environment = VectorEnvironment(
        [stepped_plan(*case, Replay(), Setup(SEED + i)) for i in range(64)]
    )
    compiled = _step_rate(environment, _compiled_actor())
    given = _step_rate(environment, _finish_with_numpy)
    return Measurement(name, given, "steps/s", 2_000_000, False, compiled, "compiled actor")


def _step_rate(environment: VectorEnvironment, finish: Finish) -> float:
    """Steps all environments to their end by first-fit, which takes one step for each placement."""

    def episode() -> None:
        environment.reset()
        finish(environment)

    spent = timed(episode)
    results = (environment.result(i) for i in range(len(environment)))
    return sum(int(result.is_placed.sum()) for result in results) / spent


def _finish_with_numpy(environment: VectorEnvironment) -> None:
    feasible, is_done = environment.observation.feasible, environment.observation.is_done
    while not is_done.all():
        environment.step(feasible.argmax(axis=1))


def _compiled_actor() -> Finish:
    import numba

    from podium.sim.kernel import stepper

    step = stepper()

    def act(feasible, actions, arguments):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        while not arguments[-1].all():
            for i in range(len(actions)):
                actions[i] = 0
                while actions[i] < feasible.shape[1] - 1 and not feasible[i, actions[i]]:
                    actions[i] += 1
            step(*arguments)

    compiled = numba.njit(nogil=True)(act)

    def finish(environment: VectorEnvironment) -> None:
        actions = np.zeros(len(environment), np.int64)
        compiled(environment.observation.feasible, actions, environment.arguments(actions))

    return finish


def _observed(name: str, _folder: Path | None) -> Measurement:
    found = process.environment_speed(REPEATS)
    bare = found["bare"]
    return Measurement(name, found["replay"], "steps/s", 1_000_000, False, bare, "bare steps")


def _observed_rounds(name: str, _folder: Path | None) -> Measurement:
    found = process.environment_speed(REPEATS)
    bare = found["bare"]
    return Measurement(name, found["rounds"], "steps/s", 800_000, False, bare, "bare steps")


def _scores(policy_name: str, target: float) -> Measure:
    def measure(name: str, folder: Path | None) -> Measurement:
        cluster, workload = openb_case("openb", folder)
        shapes = workload.aligned(cluster.gpu_models).shapes()
        nodes, policy = half_full(cluster, workload), load(policy_name)
        if not isinstance(policy, PairPolicy):
            raise TypeError(f"{policy_name} is not a pair policy")
        plain = replace(policy, not_compiled="measured as if", compiled={}, refused={})
        slow = timed(lambda: _score_all(plain, shapes, shapes.pods[:3], nodes), 1) / 3
        fast = timed(lambda: _score_all(policy, shapes, shapes.pods, nodes), 4 * REPEATS)
        return Measurement(name, fast / len(shapes), "s", target, True, slow, "plain Python")

    return measure


def _score_all(
    policy: PairPolicy, shapes: Shapes, pods: npt.NDArray[Any], nodes: npt.NDArray[Any]
) -> None:
    session = policy.session(shapes)
    for pod in pods:
        session.scores(pod, nodes)


def _new_policy(name: str, folder: Path | None) -> Measurement:
    case = openb_case("openb", folder)
    numbers = itertools.count(10**6)
    setup = Setup(tier="python")
    spent = timed(lambda: simulate(*case, fresh_policy(next(numbers)), Replay(), setup))
    return Measurement(name, spent, "s", 0.15, True, _compile_seconds(), "compiling it")


def _compile_policy(name: str, _folder: Path | None) -> Measurement:
    return Measurement(name, _compile_seconds(), "s", 0.5, True, None, "")


def _compile_seconds() -> float:
    numbers = itertools.count(2 * 10**6)

    def compile_one() -> None:
        policy = fresh_policy(next(numbers))
        if policy.kind == "pair":
            policy.native(1, 8)

    return timed(compile_one)


def _scaling(name: str, _folder: Path | None) -> Measurement:
    cluster, workload, policy = (
        uniform_cluster(1_213),
        dense_workload(7_000, 20_000),
        load("best-fit"),
    )
    ours = _speedup(lambda _: simulate(cluster, workload, policy))
    # What two threads of this machine can do at all: neighbours may hold the second core.
    bare = _speedup(_bare_loop())
    return Measurement(name, ours, "x", 1.7, False, bare, "a bare loop")


def _speedup(work: Callable[[int], object]) -> float:
    def batch(threads: int) -> float:
        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(8)))
        return time.perf_counter() - began

    batch(2)
    return statistics.median(batch(1) / batch(2) for _ in range(2 * REPEATS))


def _bare_loop() -> Callable[[int], object]:
    import numba

    def spin(start: int) -> int:
        value = np.uint64(start)
        for i in range(30_000_000):
            value = value * np.uint64(6364136223846793005) + np.uint64(i)
        return value  # type: ignore[return-value]

    loop: Callable[[int], object] = numba.njit(nogil=True)(spin)
    return loop


def _help(name: str, _folder: Path | None) -> Measurement:
    bare = statistics.median(process.seconds(["-c", "pass"]) for _ in range(REPEATS))
    spans = [process.seconds(["-m", "podium", "--help"]) for _ in range(REPEATS)]
    return Measurement(name, statistics.median(spans), "s", 0.3, True, bare, "bare interpreter")


def _cold_start(name: str, _folder: Path | None) -> Measurement:
    process.seconds(process.SIMULATE)
    warm = process.seconds(process.SIMULATE)
    return Measurement(name, process.cold_seconds(), "s", 15.0, True, warm, "warm start")


def _memory(name: str, _folder: Path | None) -> Measurement:
    small, large = process.peak_megabytes(1_213), process.peak_megabytes(100_000)
    return Measurement(name, large, "MB", 600.0, True, small, "1,213 nodes")


def _search_evaluations(name: str, _folder: Path | None) -> Measurement:
    found = process.search_speed(REPEATS)
    plain = found["plain_per_s"]
    rate = found["evaluations_per_s"]
    return Measurement(name, rate, "evaluations/s", 20.0, False, plain, "python tier, no gates")


def _search_overhead(name: str, _folder: Path | None) -> Measurement:
    share = process.search_speed(REPEATS)["overhead"]
    return Measurement(name, 100 * share, "%", 30.0, True, None, "")


def timed(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Measures the median seconds of a function, after one run to warm up."""
    work()
    spans = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        spans.append(time.perf_counter() - began)
    return statistics.median(spans)


MEASURES: dict[str, Measure] = {
    "decisions_16_nodes": _openb_16,
    "decisions_1213_nodes": _openb_1213,
    "decisions_1213_nodes_constrained": _constrained,
    "decisions_1213_nodes_dense": _dense(1_213, 7_000, 270_000),
    "decisions_10k_nodes": _dense(10_000, 50_000, 190_000),
    "decisions_100k_nodes": _dense(100_000, 60_000, 130_000),
    "replay_16_nodes": _replay_16,
    "steps_64_environments": _steps,
    "observed_64_environments": _observed,
    "observed_64_environments_rounds": _observed_rounds,
    "fgd_inflation_1213_nodes": _fgd_inflation,
    "kube_default_4k_nodes": _random_ties,
    "score_1213_nodes_fed_gpu": _scores("fed-gpu", 0.0003),
    "score_1213_nodes_fgd": _scores("fgd", 0.003),
    "new_python_policy_replay": _new_policy,
    "compile_policy": _compile_policy,
    "threads_2_speedup": _scaling,
    "help": _help,
    "cold_start": _cold_start,
    "memory_100k_nodes": _memory,
    "search_evaluations": _search_evaluations,
    "search_overhead": _search_overhead,
}
"""Every figure, in the order it is measured."""

OTHER_PROCESSES = frozenset(
    {"help", "cold_start", "memory_100k_nodes", "search_evaluations", "search_overhead"}
    | {"observed_64_environments", "observed_64_environments_rounds"}
)
"""Figures that are measured in processes of their own."""
