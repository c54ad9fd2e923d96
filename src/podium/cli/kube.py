"""Takes snapshots of a live cluster, and installs Podium on it."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.figures import count
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.kube_manifests import print_manifests
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.terminal import on_one_line
from podium.cli.watch import inform
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.kube.snapshot import Snapshot

app = new_app(__doc__)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """The options that say which cluster is meant."""

    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", help="File with contexts; default: KUBECONFIG.", show_default=False
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            "--context", help="Context of the kubeconfig; default: the current one.",
            show_default=False,
        ),
    ] = None  # fmt: skip
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Read pods of this namespace only.", show_default=False
        ),
    ] = ""


HashNames = Annotated[
    bool, typer.Option("--hash-names", help="Replace names and label values by hashes.")
]


@app.callback()
def kube() -> None:
    """Takes snapshots of a live cluster, and installs Podium on it."""


@app.command()
@stoppable
@with_blocks
def snapshot(
    ctx: typer.Context,
    *,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File that ends in .yaml, .yml or .json, also .gz."),
    ],
    cluster: ClusterOptions,
    is_hashing: HashNames = False,
    is_json: Json = False,
) -> None:
    """Writes the cluster as it is now into a file that every other verb reads.

    Nodes, pods and the objects around them are listed once. What pods run is left out: commands,
    environment, images, and annotations that say nothing about scheduling.
    """
    from podium.kube import need_extra

    need_extra()
    from podium.files.text_file import format_suffix
    from podium.traces.kubernetes.documents import SUFFIXES
    from podium.traces.kubernetes.writer import write_objects

    settings = read_settings(ctx)
    if format_suffix(target) not in SUFFIXES:
        hint = "let its name end in .json, .yaml or .yml, also with .gz"
        raise UsageError("a snapshot is YAML or JSON", where=str(target), hint=hint)
    screen = Screen(settings.display)
    taken = asyncio.run(_taken(screen, cluster))
    objects = iter(taken.objects)
    if is_hashing:
        from podium.kube.hashing import Hasher

        objects = map(Hasher(secrets.token_bytes(32)).object, taken.objects)
    write_objects(objects, target)
    if is_json:
        print_json({"file": str(target), "objects": taken.counts, "notes": taken.notes})
        return
    print(on_one_line(str(target)))
    screen.note(", ".join(f"{count(number)} {kind}" for kind, number in taken.counts.items()))
    inform(screen, taken.notes)


async def _taken(screen: Screen, cluster: ClusterOptions) -> Snapshot:
    from podium.kube.access import Access, Target
    from podium.kube.client import KubeClient
    from podium.kube.resources import served
    from podium.kube.snapshot import take_snapshot

    async with KubeClient(Access(Target(cluster.kubeconfig, cluster.context))) as client:
        with screen.progress("listing") as advance:
            resources = await served(client)
            return await take_snapshot(
                client, resources, cluster.namespace, lambda _, number: advance(number)
            )


app.command("manifests")(print_manifests)
