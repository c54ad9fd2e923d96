"""Chooses the policies that go to a cluster: validated, or knowingly not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from podium.errors import PodiumError, UsageError
from podium.experiments.case import named_policy
from podium.experiments.train import trained_weights
from podium.kube.policy_files import PackedPolicy, packed_text, packed_weights
from podium.policies import Policy, catalogue
from podium.policies.loaders import read_card
from podium.policies.registry import ALIASES, RUN, shipped_text
from podium.policies.validation import UNKNOWN, Validation


class Unvalidated(PodiumError):  # noqa: N818 - it is an answer: no
    """A policy would score on a cluster that was not shown to be better than others."""

    exit_code = 1


def active_policy(reference: str, where: str, override: str, *, is_unvalidated: bool) -> Policy:
    """Loads the policy that scores.

    Raises:
        Unvalidated: it is known not to be validated, and nobody said that this is intended.
        UsageError: it has the name of another policy, which ships with Podium.
    """
    policy = _deployable(reference, where)
    found = policy.validation
    if found.is_passed is False and not is_unvalidated:
        raise Unvalidated(
            f"{policy.name} is not validated: {found.reason}",
            where=where,
            hint=f"{found.hint}, or shadow it; {override} takes it all the same",
        )
    return policy


def shadow_policies(references: Iterable[str], where: str, active: Policy) -> list[Policy]:
    """Loads policies that score alongside: they change nothing, so that none needs validation.

    Raises:
        UsageError: two of them, or one and the active policy, have the same name, or one has the
            name of another policy, which ships with Podium.
    """
    policies = [_deployable(each, where) for each in references]
    names = Counter(policy.name for policy in (active, *policies))
    name, count = names.most_common(1)[0]
    if count > 1:
        raise UsageError(
            f"{count} policies are called {name}: metrics and logs could not tell them apart",
            where=where,
            hint="rename a file, or the policy in its card",
        )
    return policies


def packed(policy: Policy, reference: str) -> PackedPolicy:
    """Packs a policy for a cluster: by its name where it ships, and else with its files."""
    if _ships(reference):
        return PackedPolicy(reference)
    if policy.source is not None:
        return packed_text(policy, policy.source.text)
    path = trained_weights(reference) if reference.startswith(RUN) else Path(reference)
    assert path is not None
    card = read_card(path.with_suffix(".json"))
    return packed_weights(policy, path.with_suffix(".npz").read_bytes(), card)


def warnings_of(policies: Sequence[Policy]) -> list[str]:
    """Says of which policies it is known that they are not validated."""
    return [
        f"{each.name} is not validated: {each.validation.reason}"
        for each in policies
        if each.validation.is_passed is False
    ]


def _deployable(reference: str, where: str) -> Policy:
    """Loads a policy under a name that metrics and logs of a cluster can go by."""
    policy = named_policy(reference, where)
    if _ships(reference):
        return policy
    text = policy.source.text if policy.source is not None else None
    if shipped_text(policy.name) not in (None, text):
        raise UsageError(
            f"{policy.name} is the name of a policy that ships with Podium, and this is another",
            where=where,
            hint="rename the file, or the policy in its card",
        )
    if text is None or policy.validation != UNKNOWN:
        return policy
    return replace(policy, validation=_validation_of_copy(text))


def _validation_of_copy(text: str) -> Validation:
    """Knows again what a search wrote, wherever it was copied to."""
    from podium.search.run.found import run_that_wrote

    run = run_that_wrote(text)
    if run is None:
        return UNKNOWN
    hint = f"name {RUN}{run} or what podium search promote {run} writes"
    return Validation(False, f"{RUN}{run} wrote what it computes", hint)


def _ships(reference: str) -> bool:
    return reference in {*(each.name for each in catalogue()), *ALIASES}
