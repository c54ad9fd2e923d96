import importlib
import pkgutil
from dataclasses import fields
from typing import get_args

import pytest
from typer.main import get_command

import podium
from podium import errors
from podium.cli import failure
from podium.cli.main import Podium
from podium.errors import PodiumError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import catalogue, load
from podium.policies.scheduler_config.plugins import PLUGINS
from podium.reports.bench.benchmark import MEASURES
from podium.reports.summary import summarise
from podium.reports.tables import COLUMNS
from podium.settings import keys
from podium.sim import Inflation, Replay, Rounds, simulate
from podium.sim.filters import Reason
from podium.sim.metrics import POD_CLASSES
from podium.sim.refusal import OTHER_REASONS
from podium.sim.timeline import Timeline
from podium.traces.openb.csv_file import NODE_COLUMNS, POD_COLUMNS
from support.pages import DOCS, first_cells, headings


def cells(page):
    """Lists the names in the first column of a page's tables; a cell may hold several."""
    return {name.strip() for cell in first_cells(DOCS / page) for name in cell.split(",")}


def command_names():
    """Lists every command and sub-command as it is typed."""
    for verb in Podium.verbs:
        yield f"podium {verb.name}"
        command = get_command(importlib.import_module(verb.module).app)
        for name in getattr(command, "commands", ()):
            yield f"podium {verb.name} {name}"


def error_names():
    """Lists every class of error, that of a bug included."""
    for value in (*vars(errors).values(), *vars(failure).values()):
        if isinstance(value, type) and issubclass(value, PodiumError):
            yield value.__name__


@pytest.fixture(scope="module")
def summaries():
    """Summarises a small run under every protocol."""
    cluster = Cluster.of([NodeSpec("node", 8000, 8192, 2, "A")])
    pods = [PodSpec(f"pod-{i}", 1000, 1024, 1, 500, arrival_s=i, duration_s=9.0) for i in range(9)]
    policy, workload = load("first-fit"), Workload.of(pods)
    return [
        summarise(simulate(cluster, workload, policy, protocol))
        for protocol in (Replay(), Inflation(), Rounds())
    ]


def test_every_command_has_a_heading():
    assert list(command_names()) == [h for h in headings(DOCS / "commands.md") if "podium" in h]


def test_every_room_has_a_row():
    rooms = {found.name for found in pkgutil.iter_modules(podium.__path__)} - {"__main__"}
    assert rooms <= cells("architecture.md")


def test_every_setting_has_a_row():
    assert {cell for cell in cells("settings.md") if "." in cell} == set(keys())


def test_every_error_has_a_row():
    assert {cell for cell in cells("errors.md") if cell[:1].isupper()} == set(error_names())


def test_every_policy_has_a_heading():
    names = [info.name for info in catalogue()]
    page = headings(DOCS / "policies.md")
    assert page[page.index("Policies that ship") + 1 :] == names


def test_every_figure_of_a_run_has_a_row(summaries):
    # Notes are added by the command line.
    assert {name for summary in summaries for name in summary} | {"notes"} <= cells("simulate.md")


def test_every_class_of_pod_is_named():
    text = (DOCS / "simulate.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in POD_CLASSES)


def test_every_reason_for_which_a_pod_is_not_placed_has_a_row():
    assert {*get_args(Reason), *OTHER_REASONS, "bound", "refusals"} <= cells("simulate.md")


def test_every_column_of_the_written_tables_has_a_row():
    assert {*COLUMNS, *(item.name for item in fields(Timeline))} <= cells("simulate.md")


def test_every_column_of_a_list_has_a_row():
    assert {*NODE_COLUMNS, *POD_COLUMNS} <= cells("traces.md")


def test_every_score_plugin_has_a_row():
    assert set(PLUGINS) <= cells("scheduler-configuration.md")


def test_every_measured_figure_has_a_row():
    assert set(MEASURES) == {cell for cell in cells("speed.md") if "_" in cell or cell == "help"}
