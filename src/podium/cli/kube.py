"""Snapshots, records and explains live clusters; installs Podium."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.failure import INTERRUPTED, Told
from podium.cli.figures import count
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.kube_explain import explain_pod
from podium.cli.kube_manifests import print_manifests
from podium.cli.kube_try import try_podium
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable, stopping
from podium.cli.terminal import on_one_line
from podium.cli.watch import inform
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.kube.record import Recorder
    from podium.kube.snapshot import Snapshot
    from podium.kube.watch import ClusterWatch

app = new_app(__doc__)

SAID_S = 5.0
"""A cluster that is not heard for so long is mentioned while it is recorded."""


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
    """Snapshots, records and explains live clusters; installs Podium."""


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
        from podium.kube.hashing import Hasher, new_salt

        objects = map(Hasher(new_salt()).object, taken.objects)
    write_objects(objects, target)
    if is_json:
        print_json({"file": str(target), "objects": taken.counts, "notes": taken.notes})
        return
    print(on_one_line(str(target)))
    screen.note(", ".join(f"{count(number)} {kind}" for kind, number in taken.counts.items()))
    inform(screen, taken.notes)


@app.command()
@with_blocks
def record(
    ctx: typer.Context,
    *,
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File that ends in .jsonl; an old one goes on.")
    ],
    cluster: ClusterOptions,
    period: Annotated[
        str | None,
        typer.Option("--for", help="End after 90m, 2h or seconds.", show_default=False),
    ] = None,
    is_hashing: HashNames = False,
    is_json: Json = False,
) -> None:
    """Records which pods come, run and end, into a file that every other verb reads as a trace.

    Goes on until ctrl-C, SIGTERM or the end of --for. Lines are only ever added, each at once:
    a recorder that is killed loses nothing, and started again with the same file it goes on.
    The salt of --hash-names is kept in OUT.salt, which only you can read, so that one name keeps
    one hash; delete it once the recording is over.
    """
    from podium.kube import need_extra

    need_extra()
    from podium.kube.hashing import Hasher, kept_salt
    from podium.kube.record import Recorder

    settings = read_settings(ctx)
    screen, period_s = Screen(settings.display), _seconds(period)
    recorder = Recorder(target, Hasher(kept_salt(target)) if is_hashing else None)
    is_interrupted = False
    with recorder:
        try:
            with stopping():
                asyncio.run(_recorded(screen, cluster, recorder, period_s))
        except KeyboardInterrupt:
            is_interrupted = True
    _show_recording(screen, target, is_json=is_json)
    if is_interrupted:
        raise typer.Exit(Told(INTERRUPTED))


def _show_recording(screen: Screen, target: Path, *, is_json: bool) -> None:
    from podium.traces.kubernetes.recording import exits, load_recording

    recording = load_recording(target)
    counts = exits(recording)
    if is_json:
        span_s = recording.ended_s - recording.begun_s
        print_json({"file": str(target), "recorded_s": span_s, "pods": counts})
        return
    print(on_one_line(str(target)))
    pods = (f"{count(number)} {end}" for end, number in counts.items())
    screen.note(f"pods: {', '.join(pods) or 'none'}")


def _seconds(period: str | None) -> float | None:
    from podium.traces.kubernetes.run_times import Constant, parse_run_time

    if period is None:
        return None
    problem = UsageError(f'"{period}" is not a time', where="--for", hint="give 90m, 2h or seconds")
    try:
        parsed = parse_run_time(period)
    except UsageError:
        raise problem from None  # it names what a run time may be, and --for may not
    if not isinstance(parsed, Constant):
        raise problem
    return parsed.run_time_s


async def _recorded(
    screen: Screen, cluster: ClusterOptions, recorder: Recorder, period_s: float | None
) -> None:
    from podium.kube.access import Access, Target
    from podium.kube.client import KubeClient
    from podium.kube.resources import served
    from podium.kube.snapshot import narrowed
    from podium.kube.watch import ClusterWatch

    async with KubeClient(Access(Target(cluster.kubeconfig, cluster.context))) as client:
        resources = await served(client)
        async with ClusterWatch(client, recorder, resources, cluster.namespace) as watch:
            await watch.synced()
            inform(screen, [*watch.refused(), *narrowed(cluster.namespace)])
            screen.note(f"recording into {recorder.path}; ctrl-C ends it")
            telling = asyncio.create_task(_tell_outages(screen, watch))
            try:
                await _until_the_end(watch, recorder, period_s)
            finally:
                telling.cancel()


async def _until_the_end(watch: ClusterWatch, recorder: Recorder, period_s: float | None) -> None:
    from podium.kube.record import ALIVE_S

    end_s = None if period_s is None else watch.clock() + period_s
    alive_s = watch.clock()
    while end_s is None or watch.clock() < end_s:
        await asyncio.sleep(0.2 if end_s is None else min(0.2, end_s - watch.clock()))
        watch.check()
        if watch.clock() - alive_s > ALIVE_S:
            alive_s = watch.clock()
            recorder.alive()


async def _tell_outages(screen: Screen, watch: ClusterWatch) -> None:
    """Says when the cluster is not heard for a while, and when it is again."""
    is_told, before = False, list[str]()
    while True:
        await asyncio.sleep(SAID_S)
        problems = watch.problems()
        if problems and before and not is_told:
            inform(screen, [f"the cluster is not heard, and asked again: {problems[0]}"])
            is_told = True
        elif is_told and not problems:
            screen.note("the cluster is heard again")
            is_told = False
        before = problems


async def _taken(screen: Screen, cluster: ClusterOptions) -> Snapshot:
    from podium.kube.access import Access, Target
    from podium.kube.client import KubeClient
    from podium.kube.resources import RESOURCES, VOLUMES, served
    from podium.kube.snapshot import take_snapshot

    async with KubeClient(Access(Target(cluster.kubeconfig, cluster.context))) as client:
        with screen.progress("listing") as advance:
            resources = await served(client, (*RESOURCES, *VOLUMES))
            return await take_snapshot(
                client, resources, cluster.namespace, lambda _, number: advance(number)
            )


app.command("explain")(stoppable(explain_pod))
app.command("manifests")(print_manifests)
app.command("try")(try_podium)
