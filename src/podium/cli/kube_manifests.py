"""Prints the objects that install Podium on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.watch import inform
from podium.kube.manifests import (
    DEFAULT,
    LARGEST_APPLIED,
    OWN_IMAGE,
    Installation,
    manifests,
    objects,
)
from podium.kube.policy_files import PackedPolicy


class Mode(StrEnum):
    """How kube-scheduler and Podium stand to each other."""

    scheduler = "scheduler"
    extender = "extender"


def print_manifests(
    ctx: typer.Context,
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="scheduler: a kube-scheduler of its own; extender: one that you configure.",
        ),
    ] = Mode.scheduler,
    policy: Annotated[
        str, typer.Option("--policy", help="Policy that scores, by name, file or run.")
    ] = DEFAULT.reference,
    shadow: Annotated[
        list[str] | None,
        typer.Option(
            "--shadow",
            help="Policy that scores alongside without effect; repeatable.",
            show_default=False,
        ),
    ] = None,
    is_unvalidated: Annotated[
        bool, typer.Option("--unvalidated", help="Take a policy that is not validated.")
    ] = False,
    is_disabled: Annotated[
        bool,
        typer.Option(
            "--disabled", help="Switch Podium off: kube-scheduler no longer asks it, and packs."
        ),
    ] = False,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", help="Namespace, which is created unless it is default or kube-*."
        ),
    ] = "podium-system",
    scheduler_name: Annotated[
        str, typer.Option("--scheduler-name", help="schedulerName that pods give.")
    ] = "podium-scheduler",
    image: Annotated[str, typer.Option("--image", help="Image of Podium.")] = OWN_IMAGE,
    kubernetes_version: Annotated[
        str, typer.Option("--kubernetes-version", help="Version of kube-scheduler.")
    ] = "v1.36.4",
    is_json: Json = False,
) -> None:
    """Prints the objects that install Podium on a cluster, for kubectl apply.

    They are those of the Helm chart with its own values, which offers more. Policies that do
    not ship with Podium are put into a ConfigMap.
    """
    screen = Screen(read_settings(ctx, {}).display)
    chosen = _policies(policy, shadow or (), is_unvalidated=is_unvalidated)
    installation = Installation(
        mode=mode.value,
        namespace=namespace,
        scheduler_name=scheduler_name,
        image=image,
        kubernetes_version=kubernetes_version,
        policy=chosen.packed[0],
        shadow=chosen.packed[1:],
        is_unvalidated=chosen.is_unvalidated,
        is_disabled=is_disabled,
    )
    text = manifests(installation)
    inform(screen, [*chosen.warnings, *_advice(installation)])
    if is_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": objects(text)})
    else:
        print(text, end="")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Holds the policy that scores and its shadows, ready for a cluster."""

    packed: tuple[PackedPolicy, ...]
    is_unvalidated: bool  # the one that scores
    warnings: tuple[str, ...]


def _policies(reference: str, shadow: Sequence[str], *, is_unvalidated: bool) -> _Chosen:
    from podium.experiments.deployment import active_policy, packed, shadow_policies, warnings_of

    override = "--unvalidated"
    active = active_policy(reference, "--policy", override, is_unvalidated=is_unvalidated)
    names = [name for name in dict.fromkeys(shadow) if name != reference]
    shadows = shadow_policies(names, "--shadow", active)
    return _Chosen(
        (packed(active, reference), *map(packed, shadows, names)),
        active.validation.is_passed is False,
        tuple(warnings_of([active, *shadows])),
    )


def _advice(installation: Installation) -> list[str]:
    is_large = installation.policy_bytes > LARGEST_APPLIED
    return ["the policies are large: use kubectl apply --server-side"] if is_large else []
