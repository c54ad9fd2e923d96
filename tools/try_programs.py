"""Draws programs, leads them through the gates of candidates, and compares their tiers.

    python tools/try_programs.py --programs 2000

Each program is drawn from its number, so whatever is found can be drawn again with --first.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

CHUNK = 100


def try_chunk(first: int, compile_every: int) -> tuple[Counter[str], list[str]]:
    """Tries a hundred programs; gives counts, and whatever was wrong."""
    from support.programs import draw_program, draw_sober, draw_wide
    from support.tiers import states_for_programs, tried

    warnings.simplefilter("ignore")  # drawn programs index tuples by fractional numbers
    counts: Counter[str] = Counter()
    wrong = []
    states = states_for_programs(first)
    for number in range(first, first + CHUNK):
        draw = (draw_program, draw_sober, draw_wide)[number % 3]
        is_compiling = number % compile_every == 0
        outcome = tried(draw(number), states, is_compiling=is_compiling)
        counts["drawn"] += 1
        counts["candidates"] += outcome.is_candidate
        counts["interpreted"] += outcome.is_interpreted
        counts["compiled"] += outcome.is_compiled
        counts["failing somewhere"] += outcome.failed > 0
        counts["states compared"] += len(states)
        if outcome.wrong:
            wrong.append(f"{number}: {outcome.wrong}")
    return counts, wrong


def main() -> int:
    """Tries programs on all cores, telling how far it is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--compile-every", type=int, default=1, help="compile one in so many")
    given = parser.parse_args()
    began, counts, wrong = time.monotonic(), Counter[str](), []
    firsts = range(given.first, given.first + given.programs, CHUNK)
    work = partial(try_chunk, compile_every=given.compile_every)
    # Numba keeps what it compiled for as long as a process lives.
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=20) as pool:
        for found, problems in pool.imap(work, firsts):
            counts += found
            wrong += problems
            for each in problems:
                print(f"wrong: {each}", flush=True)
            if counts["drawn"] % 1000 == 0:
                print(f"{counts['drawn']:,} after {time.monotonic() - began:.0f} s", flush=True)
    print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    print(f"{len(wrong)} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
