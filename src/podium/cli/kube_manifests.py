"""Prints the objects that install Podium on a cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from podium.cli.options import Json
from podium.cli.render import print_json
from podium.kube.manifests import OWN_IMAGE, Installation, manifests, objects


class Mode(StrEnum):
    """How kube-scheduler and Podium stand to each other."""

    scheduler = "scheduler"
    extender = "extender"


def print_manifests(
    mode: Annotated[
        Mode,
        typer.Option(
            "--mode",
            help="scheduler: a kube-scheduler of its own; extender: one that you configure.",
        ),
    ] = Mode.scheduler,
    policy: Annotated[
        str, typer.Option("--policy", help="Policy that scores, by name, file or run.")
    ] = "fgd",
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

    They are those of the Helm chart with its own values, which offers more. A policy that does
    not ship with Podium is put into a ConfigMap.
    """
    name, source = _policy(policy)
    text = manifests(
        Installation(
            mode=mode.value,
            namespace=namespace,
            scheduler_name=scheduler_name,
            image=image,
            kubernetes_version=kubernetes_version,
            policy=name,
            policy_source=source,
        )
    )
    if is_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": objects(text)})
    else:
        print(text, end="")


def _policy(reference: str) -> tuple[str, str]:
    """Gives the name of a policy that ships with Podium, or the text of another one."""
    from podium.errors import UsageError
    from podium.experiments.case import named_policy
    from podium.policies import catalogue

    if reference in {each.name for each in catalogue()}:
        return reference, ""
    policy = named_policy(reference, "--policy")
    if policy.source is None:
        raise UsageError(
            f"{reference} is not a Python file, and no other kind fits into a ConfigMap",
            where="--policy",
            hint="build an image that contains it, and name its path in values of the chart",
        )
    return "fgd", policy.source.text
