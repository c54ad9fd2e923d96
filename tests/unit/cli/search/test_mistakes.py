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
        assert not (tmp_path / "data" / "podium" / "runs").exists()
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
        (("run", "--generator", "genetic=x"), "is no generator with a weight"),
        (("run", "--fitness", "speed"), "flag --fitness"),
        (("run", "--time", "soon"), '"soon" is no time'),
        (("run", "--executor", "cloud"), "flag --executor"),
        (("run", "--batch", "2"), "does not reach all 4 islands"),
        (("run", "--policy", "nothing.py"), "nothing.py"),
        (("run", "--start", "middle"), "no such start"),
        (("run", "--nodes", "8"), "--nodes needs --trace"),
        (("run", "--from", "nowhere"), 'run "nowhere"'),
        (("resume", "nobody"), 'unknown run "nobody"'),
        (("status", "nobody"), 'unknown run "nobody"'),
        (("promote", "nowhere"), 'run "nowhere"'),
        (("compare", "genetik"), 'arm "genetik"'),
    ],
)
def test_a_mistake_is_told_before_anything_starts(refused, arguments, told):
    open_store("runs.db").close()
    code, words = refused(*arguments, "--store", "runs.db")
    assert code == 2
    assert told in words


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (("--base-url", "http://127.0.0.1:9/v1"), 2, "add --usd 2, or --tokens 1000000"),
        (("--tokens", "9"), 3, "there is no key for a language model"),
        (("--tokens", "9", "--base-url", "nowhere"), 2, "flag --base-url"),
        (("--replay", "nothing.jsonl"), 2, "there is no such cassette"),
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
