"""Lists, checks, generates and converts traces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.figures import count
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.options import DumpOptions, Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.terminal import on_one_line
from podium.cli.watch import inform
from podium.errors import InputError, UnknownName, UsageError
from podium.experiments.loading import load_options
from podium.experiments.places import traces_folder

if TYPE_CHECKING:
    from podium.traces import LoadOptions, Trace

app = new_app(__doc__)

Reference = Annotated[
    str,
    typer.Argument(
        metavar="TRACE", help="A name that `list` shows, a file, a folder, or - for standard input."
    ),
]
ClusterReference = Annotated[
    str | None, typer.Option("--cluster", help="Take the nodes from another name or file.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Seed of the embedded trace; default: [simulate] seed.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out bad rows and list them.")]
Target = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="File that ends in .csv, .yaml, .yml or .json, also .gz."),
]


@app.command("list")
def list_verb(ctx: typer.Context, traces: TracesFolder = None, is_json: Json = False) -> None:
    """Lists the traces that are known by name."""
    from podium.traces import list_traces

    settings = read_settings(ctx, {"traces.folder": traces})
    listed = list_traces(traces_folder(settings))
    if is_json:
        print_json(listed)
        return
    Screen(settings.display).table(
        ["trace", "origin", "present", "nodes", "pods", "summary"],
        [(t.name, t.origin, t.is_present, t.nodes, t.pods, t.summary) for t in listed],
    )


@app.command()
@stoppable
@with_blocks
def info(
    ctx: typer.Context,
    *,
    reference: Reference,
    cluster: ClusterReference = None,
    seed: Seed = None,
    dump: DumpOptions,
    is_skipping_bad: SkipBad = False,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Describes a trace: nodes, pods, shapes, demand and times."""
    from podium.cli.trace_sheet import show_description
    from podium.traces.info import describe

    flags = {"simulate.seed": seed, "traces.folder": traces}
    settings = read_settings(ctx, {**dump.settings(), **flags})
    options = load_options(settings, is_skipping_bad=is_skipping_bad)
    described = describe(_loaded(reference, cluster, options))
    if is_json:
        print_json(described)
    else:
        show_description(Screen(settings.display), described)


@app.command()
@stoppable
@with_blocks
def check(
    ctx: typer.Context,
    *,
    reference: Reference,
    cluster: ClusterReference = None,
    dump: DumpOptions,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Checks a trace for problems.

    Exits with 1 when something is found.
    """
    from podium.traces.check import findings, remarks

    settings = read_settings(ctx, {**dump.settings(), "traces.folder": traces})
    notes: list[str] = []
    try:
        trace = _loaded(reference, cluster, load_options(settings, is_skipping_bad=True))
        found, notes = findings(trace), remarks(trace)
    except InputError as error:
        found = [str(error)]
    if is_json:
        answer = {"trace": reference, "is_sound": not found, "findings": found, "notes": notes}
        print_json(answer)
        raise typer.Exit(1 if found else 0)
    screen = Screen(settings.display)
    if found:
        print("\n".join(map(on_one_line, found)))
    else:
        screen.note(f"{reference}: no problems found")
    inform(screen, notes)
    raise typer.Exit(1 if found else 0)


@app.command()
@stoppable
def generate(
    ctx: typer.Context,
    target: Target,
    nodes: Annotated[int | None, typer.Option(min=1, help="Number of nodes.")] = None,
    pods: Annotated[int | None, typer.Option(min=1, help="Number of pods.")] = None,
    seed: Seed = None,
) -> None:
    """Generates a trace of any size from the profile of OpenB.

    Nodes and pods become two CSV files, NAME-nodes.csv and NAME-pods.csv, or one file of
    Kubernetes manifests.
    """
    from podium.traces import load_trace

    settings = read_settings(ctx, {"simulate.seed": seed})
    options = load_options(settings, nodes=nodes, pods=pods)
    _save(Screen(settings.display), load_trace("openb", options), target)


@app.command()
@stoppable
@with_blocks
def convert(
    ctx: typer.Context,
    *,
    source: Reference,
    target: Target,
    cluster: ClusterReference = None,
    seed: Seed = None,
    dump: DumpOptions,
    is_skipping_bad: SkipBad = False,
    traces: TracesFolder = None,
) -> None:
    """Writes a trace in another format."""
    flags = {"simulate.seed": seed, "traces.folder": traces}
    settings = read_settings(ctx, {**dump.settings(), **flags})
    trace = _loaded(source, cluster, load_options(settings, is_skipping_bad=is_skipping_bad))
    _save(Screen(settings.display), trace, target)


@app.command()
@stoppable
def topology(
    ctx: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file of Kubernetes manifests.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="File to write, with labels.")],
    servers_per_rack: Annotated[int, typer.Option(min=1, help="Nodes per rack.")],
) -> None:
    """Labels nodes with racks and servers, in their order."""
    from podium.traces.kubernetes.topology import write_topology

    screen = Screen(read_settings(ctx).display)
    labelled = write_topology(source, target, servers_per_rack)
    racks = -(-labelled // servers_per_rack)
    print(target)
    screen.note(f"{count(labelled)} nodes in {count(racks)} racks")


@app.command()
@stoppable
def fetch(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="openb")],
    traces: TracesFolder = None,
) -> None:
    """Downloads original traces and verifies them.

    Shows how to cite them. Files that are there and intact are kept.
    """
    from podium.traces.openb.fetch import fetch_openb
    from podium.traces.openb.files import CITATION, openb_index

    if name != "openb":
        raise UnknownName.among("collection of traces", name, ["openb"])
    settings = read_settings(ctx, {"traces.folder": traces})
    target = settings.traces.folder or settings.traces.cache
    screen = Screen(settings.display)
    done_by_file: dict[str, int] = {}
    with screen.progress("downloading", sum(f.size_bytes for f in openb_index().files)) as advance:

        def follow(file_name: str, done: int, _size: int) -> None:
            advance(done - done_by_file.get(file_name, 0))
            done_by_file[file_name] = done

        files = fetch_openb(target, follow)
    print(target)
    screen.note(f"{len(files)} files with correct checksums. Please cite:\n{CITATION}")


def _loaded(reference: str, cluster: str | None, options: LoadOptions) -> Trace:
    from podium.traces.catalogue import load_on, load_trace

    if cluster is None:
        return load_trace(reference, options)
    nodes = load_trace(cluster, options)
    if nodes.cluster is None:
        raise UsageError(
            "it contains no nodes",
            where=f"--cluster {cluster}",
            hint="give a node list or manifests of nodes",
        )
    trace, nodes = load_on(reference, nodes, options)
    return replace(trace, cluster=nodes.cluster, notes=(*trace.notes, *nodes.notes))


def _save(screen: Screen, trace: Trace, target: Path) -> None:
    from podium.traces import save_trace
    from podium.traces.save import losses

    print("\n".join(on_one_line(str(path)) for path in save_trace(trace, target)))
    nodes = len(trace.cluster) if trace.cluster is not None else 0
    pods = len(trace.workload) if trace.workload is not None else 0
    screen.note(f"{count(nodes)} nodes, {count(pods)} pods")
    inform(screen, (*trace.notes, *losses(trace, target)))
