"""Opens runs: new ones by a plan, earlier ones as their folder and the store have them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from podium.errors import InputError, UnknownName
from podium.evaluation.cases import TrainingSet
from podium.search.generators.command import CommandSettings, open_command
from podium.search.generators.generator import Generator
from podium.search.generators.genetic.breeding import BreedingSettings
from podium.search.generators.genetic.generator import GeneticGenerator
from podium.search.generators.genetic.seeds import seeds
from podium.search.generators.llm.prompt import PromptWriter
from podium.search.program.writer import write
from podium.search.run.executor import Executor, local_executor, ray_executor
from podium.search.run.folder import PLAN, SearchFolder
from podium.search.run.loop import Parts, Search, Watch
from podium.search.run.plan import ALL, GENERATORS, SEEDS, RunPlan
from podium.search.run.selection import Selector
from podium.search.run.trust import Options, check_place, trusted, whole, without_secrets
from podium.search.run.validator import Validator
from podium.search.sandbox.limits import Limits
from podium.settings import Secrets
from podium.store import RunRecord, Store, run_folder

KIND = "search"
LOCAL, RAY = "local", "ray"
EXECUTORS = (LOCAL, RAY)

_NONE_KNOWN = Secrets()


@dataclass(frozen=True, slots=True)
class Means:
    """The resources a run works with; none of them changes what it finds."""

    workers: int = 1
    executor: str = LOCAL
    ray_address: str = ""
    limits: Limits = field(default_factory=Limits)
    is_validating: bool = True
    usd: float | None = None  # more to spend than the plan says
    tokens: int | None = None
    answering: Mapping[str, Any] = field(default_factory=dict)  # otherwise than the plan says
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    base_url: str = field(default="", repr=False)  # the plan has it without its password
    command: str = field(default="", repr=False)  # likewise
    parameters: str = field(default="", repr=False)  # likewise, as they are set
    given: Options = field(default_factory=dict, repr=False)  # by this user, in this process
    root: Path | None = None  # where this user keeps runs; None: wherever the record says

    def __post_init__(self) -> None:
        if self.executor not in EXECUTORS:
            raise UnknownName.among("executor", self.executor, EXECUTORS)


def create_run(
    store: Store, plan: RunPlan, record: RunRecord, secrets: Secrets = _NONE_KNOWN
) -> SearchFolder:
    """Enters a new run in the store and makes the folder that its record names."""
    for name, _ in plan.generators:
        if name not in GENERATORS:
            raise UnknownName.among("generator", name, GENERATORS)
    folder = SearchFolder(Path(record.folder))
    # Whatever is kept is kept without passwords; `Means` has them for as long as it works.
    shown = replace(record, settings=secrets.hide_all(record.settings))
    saved = {**plan.as_object(), "options": without_secrets(plan.options, secrets)}
    run_folder.create_run(store, shown, folder, {PLAN: saved})
    return folder


@contextmanager
def open_search(
    store: Store, record: RunRecord, means: Means, watch: Watch = lambda _progress: None
) -> Iterator[Search]:
    """Opens a run to work on it; everything is closed afterwards, whatever happens."""
    folder = SearchFolder(Path(record.folder))
    plan = RunPlan.from_object(folder.read(PLAN))
    if means.root is not None:
        check_place(folder, record.id, means.root, plan)
    plan = trusted(folder, record, plan, means.given)
    folder.lock()
    with ExitStack() as stack:
        stack.callback(folder.unlock)
        generators = open_generators(plan, folder, means)
        for each in generators.values():
            stack.callback(each.close)
        executor = open_executor(plan.training, plan.fitness, means)
        stack.callback(executor.close)
        validator = Validator(plan.training, plan.fitness, means.limits, may_hold=plan.may_hold)
        stack.callback(validator.close)
        selector = Selector(plan.training, plan.fitness, means.limits, may_hold=plan.may_hold)
        stack.callback(selector.close)
        parts = Parts(
            store, folder, executor, generators, starters_of(plan),
            validator.check if means.is_validating else _unchecked, selector.measure, watch,
        )  # fmt: skip
        yield Search(record.id, plan, parts)


def open_executor(training: TrainingSet, fitness: str, means: Means) -> Executor:
    """Starts what judges candidates."""
    if means.executor == RAY:
        return ray_executor(training, fitness, means.workers, means.limits, means.ray_address)
    return local_executor(training, fitness, means.workers, means.limits)


def open_generators(plan: RunPlan, folder: SearchFolder, means: Means) -> dict[str, Generator]:
    """Opens the generators that a plan names."""
    return {name: _generator(name, plan, folder, means) for name, _ in plan.generators}


def starters_of(plan: RunPlan) -> Sequence[tuple[str, str]]:
    """Lists the texts that a run begins with, by name."""
    own = [(name, write(program)) for name, program in seeds().items()]
    return [*(own if plan.start == SEEDS else []), *plan.starters]


def _generator(name: str, plan: RunPlan, folder: SearchFolder, means: Means) -> Generator:
    options: dict[str, Any] = dict(plan.options.get(name, {}))
    if name == "llm":
        from podium.search.generators.llm.setup import open_llm

        writer = prompt_writer(plan.training, options)
        return open_llm(llm_settings(options, folder, means), writer=writer)
    if name == "command":
        writer = prompt_writer(plan.training, options)
        options["command"] = whole("command", options["command"], means.command)
        return open_command(CommandSettings(**options), means.environ, writer=writer)
    settings = BreedingSettings(
        largest=plan.largest,
        may_hold=plan.may_hold,
        draws_ingredients=plan.ingredients == ALL,
    )
    return GeneticGenerator(settings, name, **({"fresh": 1.0} if name == "random" else {}))


def prompt_writer(training: TrainingSet, options: dict[str, Any]) -> PromptWriter:
    """Takes the prompt templates out of a generator's options, and describes what is trained on.

    Raises:
        InputError: the templates were changed after the run began.
    """
    from podium.search.generators.llm.templates import Templates
    from podium.search.generators.llm.workload import writer_for

    folder, digest = options.pop("prompts", ""), options.pop("prompts_digest", "")
    templates = Templates.read(Path(folder) if folder else None)
    if folder and templates.digest != digest:
        raise InputError.at(
            Path(folder), "the prompt templates were changed after the run had begun",
            hint="restore them, or begin a new run",
        )  # fmt: skip
    return writer_for(training, templates)


def llm_settings(options: dict[str, Any], folder: SearchFolder, means: Means) -> Any:
    """Completes what a plan says of language models by the key and the cassette."""
    from podium.search.generators.llm.budget import Price
    from podium.search.generators.llm.endpoint import find_endpoint
    from podium.search.generators.llm.options import read_parameters
    from podium.search.generators.llm.settings import LlmSettings

    mode = options.get("mode", "record")
    url = whole("base_url", options.pop("base_url", ""), means.base_url)
    if mode != "replay":
        endpoint = find_endpoint(means.environ, url)
        options |= {"base_url": endpoint.url, "key": endpoint.key}
    prices = {model: Price(*each) for model, each in options.pop("prices", {}).items()}
    cassette = Path(options.pop("cassette", "") or folder.cassette)
    models = tuple(options.pop("models"))
    options |= {name: cap for name, cap in (("usd", means.usd), ("tokens", means.tokens)) if cap}
    options |= means.answering
    if mode != "replay" and "parameters" in options:
        given = read_parameters(means.parameters)
        options["parameters"] = whole("parameters", options["parameters"], given)
    temperature = tuple(options.pop("temperature", ())) if "temperature" in options else (1.0,)
    options["temperature"] = temperature if len(temperature) > 1 else next(iter(temperature), None)
    return LlmSettings(**{**options, "models": models, "prices": prices, "cassette": cassette})


def _unchecked(_number: int, _text: str) -> None:
    return None
