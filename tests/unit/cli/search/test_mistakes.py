import sys
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.store import open_store

MODELS = ("run", "--generator", "llm", "--model", "small", "--model", "large")
KEYS = ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "PODIUM_LLM_KEY")


@pytest.fixture
def refused(runner, monkeypatch, tmp_path):
    """Runs a verb of searches that ends before there is a run; gives its code and its words."""

    def invoke(*arguments):
        result = runner.invoke(app, ["search", *arguments])
        assert result.stdout == ""
        assert not list((tmp_path / "data" / "podium").glob("runs/*"))
        lines = result.stderr.splitlines()
        assert (lines[0][:7], lines[-1][:7]) == ("error: ", "  try: ")
        return result.exit_code, result.stderr

    for name in KEYS:
        monkeypatch.setenv(name, "")
    return invoke


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--generator", "command"), "add --command PROGRAM"),
        (("run", "--generator", "llm"), "add --model NAME"),
        (("run", "--generator", "genetic=x"), "is not a generator with a weight"),
        (("run", "--fitness", "speed"), "flag --fitness"),
        (("run", "--time", "soon"), '"soon" is not a time span'),
        (("run", "--name", ""), "flag --name"),
        (("run", "--name", "../../x"), "'../../x' is not a name for a run"),
        (("run", "--executor", "cloud"), "flag --executor"),
        (("run", "--batch", "2"), "does not reach all 4 islands"),
        (("run", "--policy", "nothing.py"), "nothing.py"),
        (("run", "--start", "middle"), "unknown start"),
        (("run", "--nodes", "8"), "--nodes needs --trace"),
        (("run", "--from", "nowhere"), 'run "nowhere"'),
        (("resume", "nobody"), 'unknown run "nobody"'),
        (("status", "nobody"), 'unknown run "nobody"'),
        (("promote", "nowhere"), 'run "nowhere"'),
        (("promote", "nowhere", "--to", "no/where"), "at:  flag --to"),
        (("promote", "nowhere", "--to", "/proc"), "at:  /proc"),
        (("compare", "genetik"), 'strategy "genetik"'),
        (("compare", "command"), "add --command PROGRAM"),
        (("compare", "--command", "cat"), "--command only applies to the generator command"),
        (("compare", "--model", "m"), "--model is for language models"),
        (("compare", "--validate-on", "opnb"), 'held-out trace "opnb"'),
        (("compare", "--validate-on", "opnb"), "flag --validate-on"),
        (("run", "--generator", "gentic"), "did you mean genetic"),
        (("run", "--replay", "nope.jsonl"), "--replay is for language models"),
        (("run", "--price", "foo"), "--price is for language models"),
        (("run", "--usd", "2", "--tokens", "9"), "--usd and --tokens are for language models"),
        (("run", "--command", "cat"), "--command only applies to the generator command"),
        (("run", "--workers", "1000"), "1,000 workers are too many"),
        (("compare", "--workers", "1000"), "flag --workers"),
        (("run", "--trace", "nope"), 'unknown trace "nope"'),
        (("run", "--trace", "nope.yaml"), 'there is no file or folder "nope.yaml"'),
        (("compare", "--trace", "nope.yaml"), "flag --trace"),
    ],
)
def test_a_mistake_is_told_before_anything_starts(refused, arguments, told):
    open_store("runs.db").close()
    code, words = refused(*arguments, "--store", "runs.db")
    assert code == 2
    assert told in words


def test_a_trace_that_is_not_there_is_missed_as_in_a_simulation(refused, runner):
    asked = ("--trace", "openb:cpu050", "--store", "runs.db")
    found = runner.invoke(app, ["simulate", *asked[:2]])
    for verb in ("run", "compare"):
        code, words = refused(verb, *asked)
        assert code == found.exit_code == 3
        assert words.splitlines()[0] == found.stderr.splitlines()[0]
    assert not Path("runs.db").exists()


@pytest.mark.usefixtures("_warm_cache")
def test_a_service_that_needs_an_extra_is_missed_before_anything_is_kept(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    given = ("--tokens", "9", "--base-url", "http://127.0.0.1:9/v1", "--store", "runs.db")
    code, words = refused(*MODELS, *given)
    assert code == 3
    assert "needs the extra 'search'" in words
    with open_store("runs.db") as store:
        assert store.runs.all() == []


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (("--base-url", "http://127.0.0.1:9/v1"), 2, "add --usd 2, or --tokens 1000000"),
        (("--tokens", "9"), 3, "no API key for a language model"),
        (("--tokens", "9", "--base-url", "nowhere"), 2, "flag --base-url"),
        (("--replay", "nothing.jsonl"), 2, "no such cassette"),
    ],
)
def test_what_models_cannot_be_asked_with_is_told_before_there_is_a_run(refused, given, code, told):
    found, words = refused(*MODELS, *given, "--store", "runs.db")
    assert found == code
    assert told in words
    assert len(words.splitlines()) == 3


@pytest.mark.parametrize("fitness", ["speed", "mix:inflation=0"])
def test_an_unknown_fitness_names_the_flag(refused, tmp_path, fitness):
    (tmp_path / "candidate.py").write_text("def score(pod, node):\n    return 1.0\n")
    code, words = refused("evaluate", str(tmp_path / "candidate.py"), "--fitness", fitness)
    assert code == 2
    assert "flag --fitness" in words


@pytest.mark.parametrize(
    ("flag", "value"), [("--duration", "soon"), ("--topology", "awss"), ("--state", "nwo")]
)
def test_how_a_dump_is_meant_reaches_the_evaluation_of_a_candidate(refused, flag, value):
    Path("policy.py").write_text("def score(pod, node):\n    return 1.0\n")
    code, words = refused("evaluate", "policy.py", "--trace", "openb", flag, value)
    assert code == 2
    assert f"flag {flag}" in words


def test_a_prompt_is_printed_as_it_would_be_sent(runner):
    Path("own").mkdir()
    Path("own/improve.md").write_text("Aim at:\n{{fitness}}\n\n{{programs}}\n")
    Path("policy.py").write_text("def score(pod, node):\n    return 1.0\n")
    given = ["--seeds", "1", "--policy", "policy.py", "--prompts", "own"]
    result = runner.invoke(app, ["search", "prompt", *given])
    assert result.exit_code == 0, result.stderr
    assert "and 200 nodes with" in result.stdout
    assert "Aim at:\n1 x (mean GPU allocation" in result.stdout
    assert result.stdout.rstrip().endswith("    return 1.0\n```")
