from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from podium.cli.flags import with_blocks

Size = Annotated[int, typer.Option("--size", help="How large.")]
Name = Annotated[str, typer.Argument(metavar="NAME")]
Loud = Annotated[bool, typer.Option("--loud")]


@dataclass(frozen=True)
class Block:
    size: Size = 3
    color: Annotated[str, typer.Option("--color")] = "red"


@pytest.fixture
def app():
    found = typer.Typer()

    @found.command()
    @with_blocks
    def paint(name: Name, *, block: Block, is_loud: Loud = False):
        """Paints."""
        typer.echo(f"{name} {block} {is_loud}")

    return found


def test_a_block_gives_a_verb_one_option_for_every_field(app):
    done = CliRunner().invoke(app, ["wall", "--size", "5", "--loud"])
    assert done.stdout == "wall Block(size=5, color='red') True\n"


def test_the_help_lists_the_options_of_a_block_where_it_stands(app):
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert "Paints." in text
    assert "How large." in text
    places = [text.index(flag) for flag in ("--size", "--color", "--loud")]
    assert places == sorted(places)


def test_a_value_of_the_wrong_type_is_refused(app):
    assert CliRunner().invoke(app, ["wall", "--size", "large"]).exit_code == 2
