"""Makes members of islands, and batches of what became of candidates."""

from dataclasses import replace

import numpy as np

from podium.search.population import Member
from podium.search.population.archive import Archive, IslandSettings
from podium.store import CandidateRecord

FAMILIES = ("openb inflation", "openb inflation", "openb:16 replay", "openb:16 replay")


def member(number, fitness=50.0, **others):
    """Gives a member that decides like no other."""
    facts = {
        "text": f"def score(pod, node):\n    return {number}\n",
        "complexity": 10,
        "signature": f"{number:016x}",
        "behaviour": (0.5, 0.5, 0.5, 0.0),
        "case_scores": (fitness,) * 4,
    }
    return Member(number, fitness=fitness, **{**facts, **others})


def candidate(number, island, parents, found, *, is_for_all=False, is_tuned=False):
    """Gives the row of a judged candidate: accepted as the member, or refused."""
    row = CandidateRecord(
        "run", number, island=island, parents=parents, state="judged",
        kind="seed" if is_for_all else "tuned" if is_tuned else "bred",
    )  # fmt: skip
    if found is None:
        return row
    return replace(
        row, accepted=True, text=found.text, fitness=found.fitness, complexity=found.complexity,
        signature=found.signature, behaviour=found.behaviour, may_hold=found.may_hold,
        scores={"by_case": list(found.case_scores)}, thought=found.thought,
        diagnostics=found.diagnostics,
    )  # fmt: skip


def random_member(rng, number, signatures=10**9):
    """Draws a member; few signatures make many twins."""
    scores = tuple(float(each) for each in rng.normal(50, 5, 4))
    return member(
        number,
        sum(scores) / 4,
        complexity=int(rng.integers(5, 60)),
        signature=f"{rng.integers(signatures):016x}",
        behaviour=tuple(float(each) for each in rng.random(4)),
        case_scores=scores,
    )


def random_batches(seed, count=30, size=12, islands=3, signatures=40):
    """Draws batches of candidates, a third of them refused, with parents of their own island."""
    rng = np.random.default_rng(seed)
    homes = [[] for _ in range(islands)]
    batches = []
    for batch in range(count):
        entries = []
        for i in range(size):
            number, island = batch * 100 + i, i % islands
            parents = (int(rng.choice(homes[island])),) if homes[island] else ()
            found = random_member(rng, number, signatures) if rng.random() < 0.66 else None
            if found is not None:
                homes[island].append(number)
            entries.append(candidate(number, island, parents, found, is_for_all=batch == 0))
        batches.append(entries)
    return batches


def folded(batches, settings, seed=7, families=FAMILIES):
    """Folds batches into an archive."""
    archive = Archive(settings, seed, families)
    for entries in batches:
        archive.end_batch(entries)
    return archive


SMALL = IslandSettings(islands=3, capacity=8, migrate_every=4, respawn_after=30)
