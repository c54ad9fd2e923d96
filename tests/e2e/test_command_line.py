import json
import os
import pty
import subprocess
import sys

import pytest

from podium.cli.main import Podium
from support.binary import PODIUM, clean_environment, run
from support.terminal import read_some

SAMPLE = [sys.executable, "-m", "support.verbs"]
HEAVY = (
    "sqlalchemy", "jax", "fastapi", "matplotlib", "kubernetes_asyncio", "ray", "numba", "numpy",
    "yaml", "polars", "rich", "pydantic", "asyncio", "aiohttp", "msgspec",
)  # fmt: skip


@pytest.fixture
def podium(tmp_path):
    return lambda *arguments, **environ: run([*PODIUM, *arguments], tmp_path, **environ)


@pytest.fixture
def sample(tmp_path):
    """Runs the verb that ends in every way, behind the same entry as `podium`."""
    return lambda *arguments, **environ: run([*SAMPLE, *arguments], tmp_path, **environ)


def test_help_lists_every_verb(podium):
    result = podium("--help")
    assert result.returncode == 0
    assert result.stderr == ""
    for verb in Podium.verbs:
        assert f"  {verb.name} " in result.stdout
        assert verb.help in result.stdout


def test_help_imports_nothing_heavy(tmp_path):
    program = (
        "import sys; from podium.cli.main import main; sys.argv = ['podium', '--help']\n"
        "try: main()\n"
        f"finally: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    result = run([sys.executable, "-c", program], tmp_path)
    assert "Usage: podium" in result.stdout
    assert result.stderr == "[]\n"


def test_the_version_is_printed(podium):
    assert podium("--version").stdout.startswith("podium ")
    assert podium("-V").stdout == podium("--version").stdout


def test_a_misspelt_verb_is_an_error_in_three_lines(podium):
    result = podium("docter")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: No such command 'docter'",
        "  at:  podium",
        "  try: did you mean 'doctor'; podium --help shows the usage",
    ]


def test_wrong_settings_are_an_object_on_standard_error_with_json(podium):
    result = podium("config", "--json", PODIUM_SIMULATE_SEED="many")
    assert result.returncode == 2
    assert result.stdout == ""
    assert json.loads(result.stderr) == {
        "error": {
            "code": "SettingsError",
            "message": '"many" is not a whole number',
            "where": "environment PODIUM_SIMULATE_SEED, [simulate] seed",
            "hint": "give a whole number of at least 0 (random seed)",
        }
    }


def test_settings_are_read_from_the_working_folder(podium, tmp_path):
    (tmp_path / "podium.toml").write_text("[simulate]\nseed = 7\n")
    rows = json.loads(podium("config", "--json").stdout)
    seed = next(row for row in rows if row["setting"] == "simulate.seed")
    assert (seed["value"], seed["origin"]) == (7, "podium.toml, line 2")


def test_the_doctor_finds_this_installation_sound(podium, tmp_path):
    result = podium("doctor", "--json", PODIUM_COMPILE_CACHE=str(tmp_path / "cache"))
    assert result.returncode == 0
    assert json.loads(result.stdout)["is_sound"] is True


def test_a_trace_goes_from_profile_to_labelled_manifests(podium):
    assert podium("traces", "generate", "drawn.yaml", "--nodes", "1213", "--pods", "10").stdout
    labelled = podium("traces", "topology", "--servers-per-rack", "8", "drawn.yaml", "racks.yaml")
    assert (labelled.returncode, labelled.stdout) == (0, "racks.yaml\n")
    described = json.loads(podium("traces", "info", "racks.yaml", "--json").stdout)
    assert described["cluster"]["racks"] == 152


def test_a_fetch_without_a_network_is_something_missing(podium):
    # Nothing listens on the discard port: the download fails at once, on any machine.
    result = podium("traces", "fetch", "openb", https_proxy="http://127.0.0.1:9")
    assert result.returncode == 3
    assert result.stdout == ""
    assert result.stderr.splitlines()[-1].startswith("  try: ")
    assert "PODIUM_TRACES" in result.stderr


def test_an_original_trace_that_is_not_there_is_something_missing(podium):
    result = podium("traces", "info", "openb:default", "--json")
    assert result.returncode == 3
    error = json.loads(result.stderr)["error"]
    assert error["code"] == "MissingError"
    assert "podium traces fetch openb" in error["hint"]


@pytest.mark.parametrize(
    ("ending", "code"),
    [("well", 0), ("no", 1), ("unreadable", 2), ("missing", 3), ("bug", 4), ("interrupt", 130)],
)
def test_a_process_ends_with_the_documented_code(sample, ending, code):
    assert sample("end", ending).returncode == code


def test_an_interrupt_is_told_without_a_traceback(sample):
    assert sample("end", "interrupt").stderr == "interrupted\n"


def test_a_bug_shows_its_traceback_on_request_only(sample):
    assert "Traceback" not in sample("end", "bug").stderr
    assert "Traceback" in sample("end", "bug", "--debug").stderr
    assert "Traceback" in sample("end", "bug", PODIUM_DEBUG="1").stderr


def test_a_reader_that_goes_away_ends_the_process_quietly(tmp_path):
    process = subprocess.Popen(
        [*SAMPLE, "end", "endless"],
        cwd=tmp_path,
        env=clean_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"again\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def on_terminal(arguments, folder, **environ):
    """Gives what a command prints when its standard output is a terminal."""
    ours, theirs = pty.openpty()
    environment = clean_environment(folder, TERM="xterm-256color", COLUMNS="120", **environ)
    with subprocess.Popen(
        [*PODIUM, *arguments], cwd=folder, env=environment, stdout=theirs, stderr=subprocess.PIPE
    ) as process:
        os.close(theirs)
        printed = b""
        while chunk := read_some(ours):
            printed += chunk
    os.close(ours)
    assert process.returncode == 0
    return printed.decode()


def test_a_terminal_gets_a_drawn_table(tmp_path):
    text = on_terminal(["config"], tmp_path)
    assert "──" in text
    assert "\x1b[" in text


def test_a_pipe_gets_plain_text(podium):
    result = podium("config")
    assert result.stdout.startswith("setting ")
    assert "\x1b" not in result.stdout
    assert "──" not in result.stdout


def test_shell_completion_offers_verbs_and_their_options(podium):
    verbs = podium(_PODIUM_COMPLETE="complete_bash", COMP_WORDS="podium ", COMP_CWORD="1")
    assert verbs.stdout.split() == [verb.name for verb in Podium.verbs]
    options = podium(
        _PODIUM_COMPLETE="complete_bash", COMP_WORDS="podium config --", COMP_CWORD="2"
    )
    assert "--json" in options.stdout
