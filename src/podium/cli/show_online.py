"""Prints what came of a trial of the online agent."""

from __future__ import annotations

from typing import Any

from podium.cli import figures
from podium.cli.render import Screen

NAMES = {"online": "online", "never-explore": "never", "epsilon": "epsilon"}
"""Titles of the ways that have something to regret."""


def show(screen: Screen, found: dict[str, Any]) -> None:
    """Prints what the agent lost and what it learned, for people."""
    world, online = found["world"], found["ways"]["online"]
    screen.fields(
        {
            "policy": found["policy"],
            "world": f"{figures.counted(world['job_types'], 'job type')}, "
            f"{figures.counted(world['gpu_types'], 'GPU type')}, "
            f"{figures.percent(world['noise'], 0)} noise, "
            f"{figures.percent(world['neighbour_share'], 0)} of jobs beside another",
            "seeds": _seeds(found["seeds"]),
            "decisions": f"{found['jobs']:,}: {figures.percent(online['exploration'])} exploration "
            f"(cap {figures.percent(found['exploration_cap'], 0)}), "
            f"{figures.percent(online['forced'])} forced",
        }
    )
    _regret(screen, found)
    _ways(screen, found["ways"], found["late"])
    _learned(screen, found)


def _seeds(seeds: list[int]) -> str:
    if len(seeds) == 1:
        return str(seeds[0])
    return f"{seeds[0]} to {seeds[-1]}; means over {len(seeds)} worlds"


def _regret(screen: Screen, found: dict[str, Any]) -> None:
    print("\nregret per decision: how much longer a job takes than where the oracle sends it")
    ways = found["ways"]
    rows = [
        [
            mark,
            *(figures.percent(ways[way]["regret"][at]) for way in NAMES),
            *(figures.percent(ways[way]["regret_so_far"][at]) for way in NAMES),
        ]
        for at, mark in enumerate(found["decisions"])
    ]
    screen.table(["decisions", *NAMES.values(), *(f"all {n}" for n in NAMES.values())], rows)


def _ways(screen: Screen, ways: dict[str, Any], late: int) -> None:
    print("\nregret of all decisions and of the last ones; time of all jobs above the oracle's")
    rows = [
        [
            way,
            figures.percent(found["mean_regret"]),
            figures.percent(found["late_regret"]),
            figures.percent(found["time_excess"]),
            figures.percent(found["exploration"]),
            figures.percent(found["forced"]),
        ]
        for way, found in ways.items()
    ]
    titles = ["way", "regret", f"last {late}", "time", "exploration", "forced"]
    screen.table(titles, rows)


def _learned(screen: Screen, found: dict[str, Any]) -> None:
    print(f"\nwhat was learned of hidden run times, seed {found['seeds'][0]}")
    rows = [
        [
            f"{each['job_type']} on {each['gpu_type']}",
            each["observations"],
            figures.duration(each["true_s"]),
            figures.duration(each["mu_s"]),
            figures.duration(each["sigma_s"]),
            figures.percent(each["mu_s"] / each["true_s"] - 1.0, 1),
        ]
        for each in found["pairs"]
    ]
    screen.table(["pair", "observed", "true", "mu", "sigma", "error"], rows)
    if not found["slowdowns"]:
        return
    print("\nand of hidden slowdowns, for those who met most often")
    rows = [
        [
            f"{each['job_type']} beside {each['beside']}",
            each["jobs"],
            figures.percent(each["true_slowdown"], 0),
            figures.percent(each["slowdown"], 1),
        ]
        for each in found["slowdowns"]
    ]
    screen.table(["pair", "jobs", "true", "learned"], rows)
