"""Writes one prompt of a search without running it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podium.experiments.listener import SILENT, Listener, announce_compilation
from podium.experiments.places import blaming, place_of
from podium.experiments.search_plan import read_starter
from podium.experiments.training import CasesRequest, training_set

if TYPE_CHECKING:
    from podium.search.generators.llm.prompt import Prompt
    from podium.settings import Settings


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Describes the prompt: what is trained on, and which programs it shows."""

    cases: CasesRequest
    policies: tuple[Path, ...] = ()
    seed: int = 1000


def prompt(settings: Settings, request: PromptRequest, listener: Listener = SILENT) -> Prompt:
    """Writes a prompt; programs are shown without figures, since nobody has judged them."""
    from podium.search.generators.generator import Exemplar, Request
    from podium.search.generators.llm.templates import Templates
    from podium.search.generators.llm.workload import writer_for
    from podium.search.judging.fitness import fitness_named

    with blaming(place_of(settings, "search.prompts")):
        templates = Templates.read(settings.search.prompts)
    texts = [read_starter(path)[1] for path in request.policies]
    parents = tuple(Exemplar(number, text, 0.0) for number, text in enumerate(texts))
    training = training_set(settings, request.cases, listener)
    announce_compilation(listener)
    formula = fitness_named(request.cases.fitness).text
    return writer_for(training, templates).write(Request((request.seed,), parents, fitness=formula))
