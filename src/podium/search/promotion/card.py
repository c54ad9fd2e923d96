"""Describes a promoted policy: where it came from, what it reached, what its parts are for."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podium.evaluation.measures import INFLATION, REPLAY
from podium.evaluation.paired import Difference
from podium.evaluation.validation import FITNESS, GroupResults, own_parts
from podium.search.judging.fitness import mean_values
from podium.search.promotion.ablation import Part
from podium.search.promotion.authorship import Authorship
from podium.search.promotion.control import Comparison, Origin
from podium.search.promotion.decision import Promotion
from podium.search.promotion.description import described
from podium.search.promotion.reduction import Reduced
from podium.settings import hidden_command

FIGURE_NAMES = {
    "allocation_130": ("GPU allocation at 130 % arrived load", "percent"),
    "allocation_100": ("GPU allocation at 100 % arrived load", "percent"),
    "allocation_arriving": ("GPU allocation while pods arrive", "percent"),
    "fragmentation": ("fragmentation", "percent"),
    "fragmentation_arriving": ("fragmentation while pods arrive", "percent"),
    "wait_mean_s": ("mean waiting", "seconds"),
    "wait_p95_s": ("waiting of the 95th percentile", "seconds"),
    FITNESS: ("the fitness of the search", "points"),
}
WIDTH = 96
_INDENT = "    "


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a candidate came from; what is unknown is None and is not shown."""

    run: str | None = None
    candidate: int | None = None  # its number in the run
    seed: int | None = None
    command: str | None = None
    generator: str | None = None
    evaluations: int | None = None  # of the whole run
    seconds: float | None = None
    spend_usd: float | None = None
    fitness: str | None = None  # the formula in words
    training: tuple[str, ...] = ()  # the cases, by name
    ancestry: int | None = None  # generations from a seed
    ancestor: str | None = None  # that seed, by name

    @property
    def shown_command(self) -> str | None:
        """Returns the command without passwords and keys, since policies are shared."""
        return None if self.command is None else hidden_command(self.command)

    def as_object(self) -> dict[str, Any]:
        """Describes what is known as JSON types."""
        found = {**asdict(self), "training": list(self.training), "command": self.shown_command}
        return {name: value for name, value in found.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class Standing:
    """Whose a policy is, and what shows that."""

    origin: Origin = "tuned"  # found is what was shown to be more
    authorship: Authorship | None = None  # None: it does not read as a program
    controls: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that is reported about a promoted policy."""

    name: str
    words: str  # what the policy does, in a line of whoever promotes it; or nothing
    provenance: Provenance
    reduced: Reduced
    promotion: Promotion
    parts: tuple[Part, ...]
    incumbent: str
    standing: Standing = Standing()
    describe: str = ""  # what it does and why, in the words of whoever promotes it
    aim: str = ""  # what the search was for, where it was judged by that

    @property
    def summary(self) -> str:
        """Returns the first line of the docstring."""
        return summary_of(self.words, self.standing.origin)

    @property
    def description(self) -> str:
        """Says in two sentences what the policy does and why."""
        given = " ".join(self.describe.split())
        if given or self.reduced.program is None:
            return given
        return described(self.reduced.program, self.standing.authorship)

    def docstring(self) -> str:
        """Returns the docstring of the policy's file."""
        paragraphs = [
            self.summary, "\n".join(textwrap.wrap(self.description, WIDTH)), _authorship(self),
            _controls(self), _origin(self), _validation(self), _parts(self.parts),
        ]  # fmt: skip
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)

    def as_object(self, text: str) -> dict[str, Any]:
        """Returns the card as JSON types; `text` is that of the policy's file."""
        promotion, authorship = self.promotion, self.standing.authorship
        gain = promotion.gain
        return {
            "name": self.name,
            "summary": self.summary,
            "description": self.description,
            "origin": self.standing.origin,
            "may_hold": promotion.may_hold,
            "holds": promotion.holds,
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "provenance": self.provenance.as_object(),
            **({"authorship": authorship.as_object()} if authorship is not None else {}),
            "control": [each.as_object() for each in self.standing.controls],
            "reduction": {
                "fitness": round(self.reduced.fitness, 4),
                "fitness_before": round(self.reduced.fitness_before, 4),
                "parts": self.reduced.size,
                "parts_before": self.reduced.size_before,
                "evaluations": self.reduced.evaluations,
                **({"uncut": self.reduced.uncut} if self.reduced.uncut else {}),
            },
            "decision": {
                "promoted": promotion.accepted,
                "incumbent": self.incumbent,
                **({"figure": FITNESS, "aim": self.aim} if self.aim else {}),
                "gain": [round(each, 4) for each in (gain.mean, gain.low, gain.high)],
                "p_value": promotion.p_value,
                "reasons": list(promotion.reasons),
            },
            "validation": [row.as_object() for row in promotion.table],
            "parts": [part.as_object() for part in self.parts],
        }


_UNTOLD: dict[Origin, str] = {
    "found": "Scores a pod on a node by a formula that a search found.",
    "tuned": "Scores a pod on a node by a formula of people, with numbers that a search tuned.",
    "written": "Scores a pod on a node by a formula that people wrote.",
}


def summary_of(words: str, origin: Origin = "tuned") -> str:
    """Returns the first line of a docstring: the author's words, where they say something."""
    first = words.strip().split("\n")[0].rstrip()
    is_telling = first and not first.startswith("Scores a pod on a node")
    if is_telling and len(first) <= WIDTH:
        return first if first.endswith(".") else first + "."
    return _UNTOLD[origin]


def _authorship(card: Card) -> str:
    """Says what people wrote of the formula, and what the search changed in it."""
    authorship = card.standing.authorship
    if authorship is None:
        return ""
    wrote = [f"{authorship.title}, which it is nearest to"] if authorship.seed else []
    wrote += [authorship.lent] if authorship.lent else []
    others = [each for each in authorship.ingredients if each != authorship.seed]
    wrote += [f"the quantities {_listed(others)}"] if others else []
    told = f"People wrote {', and '.join(wrote)}." if wrote else "People wrote no part of it."
    source = "these" if authorship.others else authorship.seed
    changes = [(f"{title} = {here:g}, {old:g} in {source}", "tuned")
               for title, old, here in authorship.constants]  # fmt: skip
    changes += [(code, "added") for code in authorship.added]
    changes += [(code, "left out") for code in authorship.dropped]
    head = textwrap.wrap(told + (" The search changed:" if changes else ""), WIDTH,
                         break_on_hyphens=False)  # fmt: skip
    lines = [line for code, kind in changes for line in _hanging(f"{kind:<10}{code}", 10)]
    return "\n".join([*head, "", *lines] if lines else head)


def _controls(card: Card) -> str:
    """Sets the policy beside what tuning and drawing reach with as many evaluations."""
    beside = card.standing.controls
    if not beside:
        return ""
    figure, unit = FIGURE_NAMES[beside[0].figure]
    first = f"On held-out seeds, {figure} is {beside[0].own:.2f} ({unit}). Its controls:"
    lines = [line for each in beside for line in _control_lines(each)]
    return "\n".join([*textwrap.wrap(first, WIDTH), "", *lines, "", *_verdict(card)])


def _verdict(card: Card) -> list[str]:
    origin, authorship = card.standing.origin, card.standing.authorship
    beats = "beats" if origin == "found" else "does not beat"
    because = f"it {beats} its tuned seed by more than chance"
    if authorship is not None and authorship.is_written:
        because = "people wrote all of it but the numbers"
    told = f"It is called {origin}: {because}."
    if card.promotion.may_hold:
        told += " No formula that people wrote holds pods."
    return textwrap.wrap(told, WIDTH)


def _control_lines(each: Comparison) -> list[str]:
    control = each.control
    source = f" ({control.source})" if control.arm == "tuned" else ""
    first = (
        f"{_INDENT}{control.title + source:<25}{each.its:7.2f}  lead {_spread(each.lead)}, "
        f"p = {each.p_value:.4f}, {control.evaluations:,} evaluations"
    )
    early = each.lead_100
    return [first] if early is None else [first, " " * 37 + f"at 100 % {_spread(early)}"]


def _spread(lead: Difference) -> str:
    return f"{lead.mean:+.2f} ({lead.low:+.2f} to {lead.high:+.2f})"


def _listed(words: Sequence[str]) -> str:
    """Lists words as a sentence does."""
    return ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + words[-1]


def _origin(card: Card) -> str:
    told = card.provenance
    generations = "generation" if told.ancestry == 1 else "generations"
    facts = [
        f"run {told.run}" if told.run is not None else "",
        f"candidate {told.candidate}" if told.candidate is not None else "",
        f"generator {told.generator}" if told.generator is not None else "",
        f"seed {told.seed}" if told.seed is not None else "",
        f"{told.evaluations:,} evaluations" if told.evaluations is not None else "",
        f"{told.seconds:,.0f} s" if told.seconds is not None else "",
        f"{told.spend_usd:.2f} USD" if told.spend_usd is not None else "",
        f"{told.ancestry} {generations} from {told.ancestor or 'a first program'}"
        if told.ancestry is not None
        else "",
    ]
    known = ", ".join(fact for fact in facts if fact)
    reduced = card.reduced
    verb = {"found": "Found", "tuned": "Tuned", "written": "Taken"}[card.standing.origin]
    sentences = f"{verb} by a search ({known})" if known else f"{verb} by a search"
    if reduced.uncut:
        sentences += f". It could not be reduced ({reduced.uncut})."
    else:
        sentences += f", and reduced from {reduced.size_before} parts to {reduced.size}."
    if told.fitness is not None:
        sentences += f" Fitness: {' plus '.join(told.fitness.splitlines())}."
    lines = textwrap.wrap(sentences, WIDTH)
    if told.shown_command is not None:
        lines += ["", *_hanging(told.shown_command)]
    return "\n".join(lines)


def _hanging(text: str, width: int = len(_INDENT)) -> list[str]:
    """Sets a text below a heading; further lines stand so much further in."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT + " " * width,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _validation(card: Card) -> str:
    plain = [row for row in card.promotion.table if not row.group.is_perturbed]
    inflated = [row for row in plain if row.group.protocol == INFLATION]
    replayed = [row for row in plain if row.group.protocol == REPLAY]
    paragraphs = [
        _aimed(card, [row for row in plain if FITNESS in row.means]),
        _section(
            "GPU allocation (percent of all GPUs) once 130 % and 100 % of them were asked for, on "
            f"{_seeds(inflated)}, and the mean difference to {card.incumbent} with its 95 % "
            "interval:",
            [
                _line(row, card.incumbent, ("allocation_130", "allocation_100"), 2)
                for row in inflated
            ],
        ),
        _section(
            f"Mean and p95 waiting (seconds) under replay on {_seeds(replayed)}, likewise:",
            [_line(row, card.incumbent, ("wait_mean_s", "wait_p95_s"), 0) for row in replayed],
        ),
        _remarks(card, any(row.is_trained_on for row in plain)),
    ]
    return "\n\n".join(each for each in paragraphs if each)


def _aimed(card: Card, rows: Sequence[GroupResults]) -> str:
    """Shows what the search was for, where that is no figure of a run."""
    return _section(
        f"What the search was for, {card.aim}, on {_seeds(rows)}, and the mean difference to "
        f"{card.incumbent} with its 95 % interval:",
        [_line(row, card.incumbent, (FITNESS,), 2) for row in rows],
    )


def _remarks(card: Card, is_marked: bool) -> str:
    told = ["The search trained on traces with a star, with other seeds."] if is_marked else []
    told += [f"{each}." for each in own_parts(card.promotion.table)]
    gain = card.promotion.perturbed
    if gain is not None:
        told.append(
            f"On clusters with other nodes its mean gain is {gain.mean:+.2f} ({gain.low:+.2f} to "
            f"{gain.high:+.2f})."
        )
    told += _placed([row for row in card.promotion.table if not row.group.is_perturbed])
    if card.promotion.may_hold:
        told.append("It may hold pods back; the others place whatever fits.")
        told.append(f"On these cases it holds a pod at {card.promotion.holds}.")
    return "\n".join(textwrap.wrap(" ".join(told), WIDTH))


def _placed(rows: Sequence[GroupResults]) -> list[str]:
    """Describes the share of pods that were placed, by class, averaged over the traces."""
    found = mean_values([row.means for row in rows])
    classes = [key.removeprefix("placed_130_") for key in found if key.startswith("placed_130_")]
    shares = [
        f"{each} {found[f'placed_100_{each}']:.1f} and {found[f'placed_130_{each}']:.1f}"
        for each in classes
        if f"placed_100_{each}" in found
    ]
    if not shares:
        return []
    listed = ", ".join(shares)
    return [f"Pods that it placed, in percent of those arrived at 100 % and 130 %: {listed}."]


def _section(heading: str, lines: list[str]) -> str:
    return "\n".join([*textwrap.wrap(heading, WIDTH), "", *lines]) if lines else ""


def _seeds(rows: Sequence[GroupResults]) -> str:
    count = max((row.seeds for row in rows), default=0)
    return "1 seed that no search saw" if count == 1 else f"{count} seeds that no search saw"


def _line(row: GroupResults, incumbent: str, figures: tuple[str, ...], digits: int) -> str:
    def cell(figure: str) -> str:
        found = row.differences[incumbent][figure]
        spread = f"({found.low:+.{digits}f} to {found.high:+.{digits}f})"
        return f"{row.means[figure]:8.{digits}f}{found.mean:+8.{digits}f} {spread:<18}"

    name = row.group.name
    name = name if FITNESS in figures else name.removesuffix(" replay")
    name += " *" if row.is_trained_on else ""
    return f"{_INDENT}{name:<20}{''.join(cell(figure) for figure in figures)}".rstrip()


def _parts(parts: Sequence[Part]) -> str:
    """Lists what each part is worth; the code itself says what it means."""
    named = {part.code for part in parts if part.kind == "quantity"}
    # A term that is a quantity of its own is in the list already.
    listed = [p for p in parts if p.kind != "term" or p.code.removeprefix("-") not in named]
    ranked = sorted(listed, key=lambda part: -(part.loss if part.loss is not None else 0.0))
    lines = [line for part in ranked for line in _part_lines(part)]
    heading = "What the training fitness loses without each part:"
    return "\n".join([heading, "", *lines]) if lines else ""


def _part_lines(part: Part) -> list[str]:
    lost = f"{part.loss:6.2f}" if part.loss is not None else "     ?"
    return _hanging(f"{lost}  {part.code}", 8)
