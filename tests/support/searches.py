"""Runs small searches: real workers, real stores, and ways to cut a run off."""

from dataclasses import replace

from podium.evaluation.cases import Case, TrainingSet
from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.generators.genetic.seeds import seeds
from podium.search.population.archive import IslandSettings
from podium.search.program.writer import write
from podium.search.run.folder import PLAN, SearchFolder
from podium.search.run.loop import Parts, Search
from podium.search.run.plan import Pipeline, RunPlan, Tuning
from podium.search.sandbox.limits import Limits
from podium.store import RunRecord, open_store

TRAINING = TrainingSet((Case(nodes=6, pods=60), Case(nodes=6, pods=60, seed=1001)))
LIMITS = Limits(time_s=60.0, trial_s=30.0)  # a busy machine refuses nobody
PLAN_OF_TESTS = RunPlan(
    TRAINING,
    batch=6,
    customs=IslandSettings(islands=3, capacity=6, migrate_every=2, respawn_after=8),
    tuning=Tuning(every=1, evaluations=12),
    largest=40,
    pipeline=Pipeline(lag=1, ahead=0),
)
STARTERS = [(name, write(program)) for name, program in seeds().items()][:4]
_TIMES = ("seconds", "cost")


class Sittings:
    """Keeps the store and the folder of one run, and works on it again and again."""

    def __init__(self, path, executor, plan=PLAN_OF_TESTS, generators=None, **others):
        self.store = open_store(f"sqlite:///{path / 'runs.db'}")
        self.folder = SearchFolder(path / "run")
        self.folder.write(PLAN, plan.as_object())
        self.store.runs.create(RunRecord("run", "search", "test", 0.0, folder=str(path / "run")))
        self.plan, self.executor, self.others = plan, executor, others
        self.generators = generators

    def search(self, executor=None, **others):
        """Takes the run up as a new process would."""
        made = self.generators or (lambda: {"genetic": GeneticGenerator()})
        facts = {"starters": STARTERS, **self.others, **others}
        parts = Parts(self.store, self.folder, executor or self.executor, made(), **facts)
        return Search("run", self.plan, parts)

    def go(self, batches):
        """Works in one sitting until the run has so many batches."""
        search = self.search()
        while search.archive.batches < batches and not search.ending:
            search.step()
        return search

    def rows(self):
        """Lists the candidates without what differs from run to run: the time they took."""
        return [
            replace(each, seconds=0.0, cost={k: v for k, v in each.cost.items() if k not in _TIMES})
            for each in self.store.candidates.of("run")
        ]


class Interrupting:
    """Judges for a while; then somebody presses ctrl-C."""

    def __init__(self, executor, after):
        self.executor, self.after = executor, after
        self.judged, self._left = [], []

    def baseline(self):
        """Gives what fgd reaches on each case."""
        return self.executor.baseline()

    def missing_walls(self):
        """Names the walls that the executor lacks."""
        return self.executor.missing_walls()

    def send(self, task, context):
        """Passes a task on."""
        self.executor.send(task, context)

    def receive(self, timeout_s):
        """Judges so many tasks."""
        found = self._left or self.executor.receive(timeout_s)
        self._left = found[1:]
        if found and len(self.judged) == self.after:
            raise KeyboardInterrupt
        self.judged += [done.number for done in found[:1]]
        return found[:1]

    def drop(self):
        """Passes on that nobody waits any more."""
        self._left = []
        self.executor.drop()


class Counting(Interrupting):
    """Remembers what was judged."""

    def __init__(self, executor):
        super().__init__(executor, -1)


def facts(search):
    """Takes what a run goes on from."""
    archive = search.archive
    return (
        archive.islands, archive.signatures, archive.tuned, archive.best, archive.batches,
        archive.transfers, search.tally.candidates, search.tally.evaluations,
        search.tally.accepted, search.tally.refused,
    )  # fmt: skip
