"""Searches for policies: run, resume, compare, control, promote, export."""

from __future__ import annotations

from podium.cli.group import new_app
from podium.cli.search.compare import compare
from podium.cli.search.control import control
from podium.cli.search.evaluate import evaluate
from podium.cli.search.export import export
from podium.cli.search.promote import promote
from podium.cli.search.prompt import prompt
from podium.cli.search.run import resume, run
from podium.cli.search.status import status
from podium.cli.signals import stoppable

app = new_app(__doc__)

for verb in (run, resume, status, compare, control, promote, evaluate, prompt, export):
    app.command()(stoppable(verb))
