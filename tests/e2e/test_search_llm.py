"""Searches with language models as people do: the real command, a real service over HTTP."""

import json
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from podium.policies.jit import cache_folder
from support.binary import PODIUM, run
from support.chat_server import KEY, Answer, error, fenced, running_chat_server
from support.stored import rows

pytestmark = pytest.mark.deep

# Read before any test cleans its environment.
COMPILED = cache_folder()
# To start a second worker takes longer than these searches.
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
MODELS = ["--generator", "llm", "--model", "small", "--model", "large"]
SMALL = [
    *("--trace", "openb", "--nodes", "32", "--seeds", "1", "--seed", "1007", "--batch", "8"),
    *("--islands", "2", "--tune-every", "0"),
    *("--store", "runs.db", "--time-limit", "60"),
]
WHOLE, HALF = ["--evaluations", "70"], ["--evaluations", "35"]

POLICY = '''"""Fills nodes; CPU beside free GPUs is worth {weight}."""


def score(pod, node):
    free = 0
    for slot in range(node.gpu_count):
        free += node.gpu_milli_left[slot]
    return -free - {weight} * (node.cpu_milli_left - pod.{field}) / max(1, free)
'''


def answer(body):
    """Writes a policy by the prompt alone; every fourth must be corrected."""
    prompt = "".join(message["content"] for message in body["messages"])
    weight = zlib.crc32(prompt.encode()) % 97 + 1  # so that some write the same
    is_wrong = weight % 4 == 0 and "was refused" not in prompt
    text = POLICY.format(weight=weight, field="name" if is_wrong else "cpu_milli")
    return Answer(fenced(text, f"CPU is worth {weight}"))


def late(body):
    """Writes the same, but the answers overtake each other."""
    told = json.dumps(body["messages"]).encode()
    return replace(answer(body), hang_s=zlib.crc32(told, 1) % 8 / 10)


@pytest.fixture
def server():
    """Runs a service that answers."""
    with running_chat_server() as server:
        server.script = answer
        yield server


def podium(folder, *arguments, key=KEY, program=PODIUM):
    """Runs a verb of searches to its end."""
    given = {"OPENROUTER_API_KEY": "", "OPENAI_API_KEY": "", "PODIUM_LLM_KEY": key}
    return run([*program, "search", *arguments], folder, **GIVEN, **given)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Is a search that asked a service, which is down by now."""
    folder = tmp_path_factory.mktemp("recorded")
    with running_chat_server() as server:
        server.script = answer
        given = [*MODELS, "--base-url", server.url, "--tokens", "3000000", *SMALL]
        done = podium(folder, "run", *given, *WHOLE, "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), given, server


def test_answers_of_models_are_judged_and_repaired(recorded):
    folder, told, _, server = recorded
    written = [each for each in rows(folder) if each.source.startswith("llm:")]
    assert {each.source for each in written} == {"llm:small", "llm:large"}
    assert len(written) == told["calls"] == len(server.calls)
    repairs = [each for each in written if each.kind == "repair"]
    assert repairs
    assert all("was refused" in each.prompt and "pod.name" in each.prompt for each in repairs)
    judged = [each for each in repairs if each.accepted or each.gate in ("race", "novelty")]
    assert judged
    assert all(re.fullmatch(r"CPU is worth \d+", each.thought) for each in written)
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_prompts_say_where_gpus_are_lost_and_what_was_seen(recorded):
    prompts = [each.prompt for each in rows(recorded[0]) if each.kind == "bred"]
    assert all("Overall: most is lost as " in prompt for prompt in prompts)
    assert all("placed: " in prompt for prompt in prompts)
    assert any("# What this search has seen so far" in prompt for prompt in prompts)
    assert not any(re.search(r"seed (20[01]\d|4[2-9]|5[01])\b", prompt) for prompt in prompts)


def test_the_key_is_in_no_file_of_a_run(recorded):
    folder, told, _, _ = recorded
    assert (Path(told["folder"]) / "cassette.jsonl").exists()
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert len(files) > 4
    assert not [each for each in files if KEY.encode() in each.read_bytes()]


def test_a_recorded_search_is_repeated_without_service_and_key(recorded, tmp_path):
    folder, told, given, _ = recorded
    cassette = Path(told["folder"]) / "cassette.jsonl"
    done = podium(
        tmp_path, "run", *given, *WHOLE, "--replay", str(cassette), "--json", key=""
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == rows(folder)
    assert json.loads(done.stdout)["tokens"] == told["tokens"]


def test_a_resumed_search_asks_as_if_it_had_never_stopped(recorded, server, tmp_path):
    _, told, given, _ = recorded
    given = [server.url if "127.0.0.1" in each else each for each in given]
    done = podium(tmp_path, "run", *given, *HALF, "--json")
    assert done.returncode == 0, done.stderr
    half = json.loads(done.stdout)
    state = json.loads((Path(half["folder"]) / "state.json").read_text())["generators"]["llm"]
    assert state["spent"]["tokens"] == half["tokens"] > 0
    # Of a batch that the budget has cut, the bandit hears when it is done to its end.
    assert 0 < sum(arm["calls"] for arm in state["bandit"].values()) <= half["calls"]
    done = podium(tmp_path, "resume", half["run"], *WHOLE, "--store", "runs.db", "--json")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == rows(recorded[0])
    assert json.loads(done.stdout)["tokens"] == told["tokens"] > half["tokens"]


def test_a_search_does_not_depend_on_who_answers_first(recorded, server, tmp_path):
    given = [server.url if "127.0.0.1" in each else each for each in recorded[2]]
    server.script = late
    done = podium(tmp_path, "run", *given, *WHOLE, "--json")
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == rows(recorded[0])


def test_the_budget_ends_a_search_and_more_of_it_goes_on(server, tmp_path):
    given = [*MODELS, "--base-url", server.url, *SMALL, "--evaluations", "5000"]
    done = podium(tmp_path, "run", *given, "--tokens", "30000")
    assert done.returncode == 0, done.stderr
    ended = re.search(r"^ended +(.*)$", done.stdout, re.MULTILINE)[1]
    assert re.fullmatch(
        r"the budget is used up: [\d,]+ of 30,000 tokens are spent; "
        r"the next call may take [\d,]+ tokens",
        ended,
    )
    assert 0 < server.charged_tokens <= 30_000
    spend = re.search(r"^spend +.*$", done.stdout, re.MULTILINE)[0]
    assert f"{server.charged_tokens:,} tokens at unknown cost, {len(server.calls)} " in spend
    run_id = re.search(r"^run +(\w+)", done.stdout)[1]
    assert f"podium search resume {run_id} --usd N or --tokens N continues" in done.stderr
    status = podium(tmp_path, "status", run_id, "--store", "runs.db", key="")
    assert spend in status.stdout
    again = podium(tmp_path, "resume", run_id, "--store", "runs.db")
    assert again.returncode == 0, again.stderr
    assert "the budget is used up" in again.stdout
    assert server.charged_tokens <= 30_000  # a repair may be short enough
    calls = len(server.calls)
    more = podium(tmp_path, "resume", run_id, "--store", "runs.db", "--tokens", "45000")
    assert "of 45,000 tokens are spent" in more.stdout
    assert 30_000 - 15_000 < server.charged_tokens <= 45_000
    assert len(server.calls) > calls


def test_a_wrong_key_is_an_error_and_the_right_one_goes_on(server, tmp_path):
    def guarded(body):
        is_right = server.keys[-1] == f"Bearer {KEY}"
        return answer(body) if is_right else error(401, "Incorrect API key provided: sk-wrong-key")

    server.script = guarded
    given = [*MODELS, "--base-url", server.url, *SMALL, "--evaluations", "14", "--tokens", "900000"]
    done = podium(tmp_path, "run", *given, key="sk-wrong-key")
    assert (done.returncode, done.stdout) == (3, "")
    lines = done.stderr.splitlines()[-3:]
    assert lines[0] == (
        "error: the service rejects the key (401): Incorrect API key provided: ********"
    )
    assert lines[1] == f"  at:  {server.url}"
    run_id = re.search(r"fix this, then run: podium search resume (\w+)", lines[2])[1]
    status = podium(tmp_path, "status", run_id, "--store", "runs.db", "--json", key="")
    assert json.loads(status.stdout)["status"] == "failed"
    done = podium(tmp_path, "resume", run_id, "--store", "runs.db", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tokens"] > 0


def test_breeding_and_models_search_together_for_a_price(server, tmp_path):
    done = podium(
        tmp_path, "run", "--generator", "genetic=3,llm=1", "--model", "small", "--base-url",
        server.url, "--usd", "1", "--price", "small=1,4", *SMALL, "--evaluations", "60",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    sources = [each.source for each in rows(tmp_path)]
    assert sources.count("genetic") > sources.count("llm:small") > 0
    assert re.search(r"^spend +0\.\d{4} USD, [\d,]+ tokens, \d+ calls$", done.stdout, re.MULTILINE)
    assert re.search(
        r"^price +(\d+\.\d{4} USD per point gained|no gain yet)", done.stdout, re.MULTILINE
    )


def test_a_key_that_is_not_there_is_told_before_there_is_a_run(tmp_path):
    done = podium(tmp_path, "run", *MODELS, "--tokens", "9", "--store", "runs.db", key="")
    assert done.returncode == 3
    assert "no API key for a language model" in done.stderr
    assert len(done.stderr.splitlines()) == 3
    assert not (tmp_path / ".data" / "podium" / "runs").exists()


IMPATIENT = """
from podium.cli.main import main
from podium.search.generators.llm import client

client.FIRST_WAIT_S = 0.01
main()
"""


def test_an_address_where_nobody_answers_is_an_error(tmp_path):
    given = ["--base-url", "http://127.0.0.1:9/v1", "--tokens", "900000"]
    done = podium(
        tmp_path, "run", *MODELS, *given, *SMALL, "--evaluations", "500",
        program=[sys.executable, "-c", IMPATIENT],
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    assert "the service cannot be reached" in done.stderr


def test_a_model_that_thinks_too_long_is_told_apart_and_longer_answers_go_on(server, tmp_path):
    def thoughtful(body):
        if body["max_tokens"] < 9000:
            message = {"reasoning_content": "Let me see. " * 50}
            return Answer("", finish="length", message=message, tokens_out=body["max_tokens"])
        return answer(body)

    server.script = thoughtful
    own = tmp_path / "prompts"
    own.mkdir()
    (own / "improve.md").write_text("Aim at {{fitness}}\n\n{{programs}}\n\nGo on.\n")
    given = ["--generator", "llm", "--model", "small", "--base-url", server.url, *SMALL]
    given += ["--tokens", "3000000", "--prompts", "prompts"]
    given += ["--temperature", "0.4,0.9", "--reasoning-effort", "low", "--model-calls", "1"]
    given += ["--model-parameters", '{"top_p": 0.9}']
    done = podium(tmp_path, "run", *given, "--evaluations", "30")
    assert done.returncode == 3, done.stderr
    assert "3 answers in a row ended at their limit of 4,096 tokens" in done.stderr
    assert "--max-tokens (search.max_tokens)" in done.stderr
    assert len(server.calls) == 3
    assert {call["temperature"] for call in server.calls} <= {0.4, 0.9}
    assert {(call["reasoning_effort"], call["top_p"]) for call in server.calls} == {("low", 0.9)}
    assert server.calls[0]["messages"][1]["content"].endswith("Go on.")
    (folder,) = (tmp_path / ".data/podium/runs").glob("*")
    more = ["--store", "runs.db", "--evaluations", "30"]
    done = podium(tmp_path, "resume", folder.name, *more, "--max-tokens", "9000")
    assert done.returncode == 0, done.stderr
    assert server.calls[-1]["max_tokens"] == 9000
    (own / "improve.md").write_text("Aim higher.\n")
    done = podium(tmp_path, "resume", folder.name, *more)
    assert done.returncode == 2
    assert "the prompt templates were changed after the run had begun" in done.stderr
