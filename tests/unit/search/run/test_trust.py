import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from podium.errors import MissingError, UsageError
from podium.search.judging import objective
from podium.search.judging.objective import Objective
from podium.search.run.folder import PLAN, RunFolder
from podium.search.run.plan import RunPlan
from podium.search.run.setup import Means, create_run, open_search
from podium.search.run.trust import (
    KEY,
    SEAL,
    check_objective,
    check_place,
    is_sealed,
    outside_work,
    seal,
    trusted,
)
from podium.settings import MASK, Secrets
from podium.store import RunRecord, open_store
from support.searches import LIMITS, PLAN_OF_TESTS

COMMAND = {"command": f"{sys.executable} writer.py", "keep": ["MODEL"], "folder": "/work"}
LLM = {
    "models": ["small", "large"], "base_url": "http://127.0.0.1:9/v1", "usd": 2.0, "tokens": None,
    "mode": "record", "cassette": "", "prices": {"small": [1.0, 4.0, 0.0]},
}  # fmt: skip
BOTH = replace(
    PLAN_OF_TESTS,
    generators=(("genetic", 1.0), ("command", 1.0), ("llm", 1.0)),
    options={"command": COMMAND, "llm": LLM},
)
MEANS = Means(1, limits=LIMITS, is_validating=False, environ={})


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Keeps the user's data in a folder of the test."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "podium"


@pytest.fixture
def folder(tmp_path):
    """Makes the folder of a run."""
    made = RunFolder(tmp_path / "runs" / "one")
    made.write(PLAN, BOTH.as_object())
    return made


@pytest.fixture
def store(tmp_path):
    """Keeps runs in a file."""
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        yield store


def record_of(folder):
    """Describes the run in a folder."""
    return RunRecord("one", "search", "a run", 0.0, folder=str(folder.path))


def test_a_sealed_plan_is_what_this_user_gave(folder, data):
    seal(folder, "one", BOTH)
    plan = RunPlan.from_object(folder.read(PLAN))
    assert is_sealed(folder, "one", plan)
    assert trusted(folder, record_of(folder), plan, {}).options == BOTH.options
    assert (data / KEY).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("generator", "change"),
    [
        ("command", {"command": "touch pwned"}),
        ("command", {"keep": ["OPENAI_API_KEY"]}),
        ("command", {"folder": "/tmp/attacker"}),
        ("llm", {"base_url": "http://attacker.example/v1"}),
        ("llm", {"models": ["dear"]}),
        ("llm", {"usd": 2000.0}),
        ("llm", {"cassette": "/home/ada/.bashrc"}),
        ("llm", {"prices": {}}),
        ("llm", {"timeout_s": 1e9}),
    ],
)
def test_a_plan_that_was_changed_is_shown_and_not_followed(folder, generator, change):
    seal(folder, "one", BOTH)
    options = {**BOTH.options, generator: {**BOTH.options[generator], **change}}
    plan = replace(BOTH, options=options)
    with pytest.raises(UsageError, match="nothing shows that you asked") as told:
        trusted(folder, record_of(folder), plan, {})
    if not change.keys() & {"timeout_s", "folder"}:
        value = next(iter(change.values()))
        assert str(next(iter(value), "") if isinstance(value, list | dict) else value) in (
            told.value.where + told.value.hint
        )


def test_a_generator_that_was_put_in_is_not_opened(folder):
    breeding = replace(BOTH, generators=(("genetic", 1.0),), options={})
    seal(folder, "one", breeding)
    assert trusted(folder, record_of(folder), breeding, {}) == breeding
    with pytest.raises(UsageError, match="nothing shows that you asked"):
        trusted(folder, record_of(folder), BOTH, {})


@pytest.mark.parametrize("place", ["run", "folder", "key", "readable", "no seal"])
def test_a_seal_is_for_one_run_in_one_folder_by_one_user(folder, data, tmp_path, place):
    seal(folder, "one", BOTH)
    run_id, other = "one", folder
    if place == "run":
        run_id = "two"
    elif place == "folder":
        other = RunFolder(tmp_path / "elsewhere")
        other.write_text(SEAL, (folder.path / SEAL).read_text())
    elif place == "key":
        (data / KEY).write_bytes(bytes(32))
    elif place == "readable":
        (data / KEY).chmod(0o644)
    else:
        (folder.path / SEAL).unlink()
    assert not is_sealed(other, run_id, BOTH)


def test_a_key_that_others_could_read_is_made_anew(folder, data):
    seal(folder, "one", BOTH)
    (data / KEY).chmod(0o644)
    seal(folder, "one", BOTH)
    assert is_sealed(folder, "one", BOTH)
    assert (data / KEY).stat().st_mode & 0o777 == 0o600


def test_flags_that_repeat_the_plan_confirm_it_from_then_on(folder):
    given = {"command": dict(COMMAND), "llm": dict(LLM)}
    with pytest.raises(UsageError) as told:
        trusted(folder, record_of(folder), BOTH, {"command": dict(COMMAND)})
    assert told.value.hint.endswith(
        f"podium search resume one --command '{COMMAND['command']}' --command-env MODEL "
        "--model small --model large --base-url http://127.0.0.1:9/v1 --usd 2.0 "
        "--price small=1.0,4.0"
    )
    assert trusted(folder, record_of(folder), BOTH, given).options == given
    assert trusted(folder, record_of(folder), BOTH, {}).options == BOTH.options


def test_a_command_runs_where_it_was_given_and_nowhere_that_only_the_plan_names(folder):
    given = {"command": {**COMMAND, "folder": "/elsewhere"}, "llm": dict(LLM)}
    found = trusted(folder, record_of(folder), BOTH, given)
    assert found.options["command"]["folder"] == "/elsewhere"
    assert not is_sealed(folder, "one", BOTH)
    seal(folder, "one", BOTH)
    found = trusted(folder, record_of(folder), BOTH, given)
    assert found.options["command"]["folder"] == "/work"


def test_another_budget_holds_for_this_time_and_confirms_nothing(folder):
    given = {"command": COMMAND, "llm": {**LLM, "usd": 1.0}}
    assert trusted(folder, record_of(folder), BOTH, given).options["llm"]["usd"] == 1.0
    with pytest.raises(UsageError):
        trusted(folder, record_of(folder), BOTH, {})


def test_a_run_lies_where_this_user_keeps_runs_or_began_it(folder, tmp_path):
    check_place(folder, "one", tmp_path / "runs", BOTH)
    for run_id, root in (("one", tmp_path), ("two", tmp_path / "runs"), ("..", tmp_path / "runs")):
        with pytest.raises(UsageError, match="outside the folder for runs"):
            check_place(folder, run_id, root, BOTH)
    seal(folder, "one", BOTH)
    check_place(folder, "one", tmp_path / "elsewhere", BOTH)


def test_a_link_out_of_the_folder_for_runs_is_not_followed(folder, tmp_path):
    link = tmp_path / "mine" / "one"
    link.parent.mkdir()
    link.symlink_to(folder.path)
    with pytest.raises(UsageError, match="outside the folder for runs"):
        check_place(RunFolder(link), "one", link.parent, BOTH)


def test_no_command_of_a_plan_is_started_before_it_is_confirmed(store, tmp_path):
    mark = tmp_path / "pwned"
    program = {"command": f"touch {mark}", "keep": []}
    plan = replace(PLAN_OF_TESTS, generators=(("command", 1.0),), options={"command": program})
    record = replace(record_of(RunFolder(tmp_path / "one")), settings={})
    create_run(store, plan, record)
    with (
        pytest.raises(UsageError, match="nothing shows that you asked"),
        open_search(store, record, MEANS),
    ):
        pass
    assert not Path(record.folder, "lock").exists()
    assert not mark.exists()


def test_a_masked_command_is_confirmed_by_the_whole_one(store, tmp_path):
    whole = {"command": f"{sys.executable} sEcretA1", "keep": [], "folder": str(tmp_path)}
    plan = replace(PLAN_OF_TESTS, generators=(("command", 1.0),), options={"command": whole})
    record = record_of(RunFolder(tmp_path / "one"))
    folder = create_run(store, plan, record, Secrets(frozenset(["sEcretA1"])))
    kept = RunPlan.from_object(folder.read(PLAN))
    assert "sEcretA1" not in "".join(outside_work(kept))
    assert trusted(folder, record, kept, {"command": whole}).options["command"] == whole
    with pytest.raises(MissingError, match="never stored"), open_search(store, record, MEANS):
        pass  # it is sealed now, and still not whole


def test_parameters_are_kept_without_their_keys_and_confirmed_by_the_whole_ones(store, tmp_path):
    whole = {"api_key": "sEcretA1", "top_p": 0.9}
    options = {"llm": {**LLM, "usd": None, "tokens": 9000, "parameters": whole}}
    plan = replace(PLAN_OF_TESTS, generators=(("llm", 1.0),), options=options)
    record = record_of(RunFolder(tmp_path / "one"))
    folder = create_run(store, plan, record)
    kept = RunPlan.from_object(folder.read(PLAN))
    assert kept.options["llm"]["parameters"] == {"api_key": MASK, "top_p": 0.9}
    assert trusted(folder, record, kept, options).options == options
    assert is_sealed(folder, "one", kept)
    for given in ("", json.dumps({**whole, "top_p": 0.1})):
        means = replace(MEANS, parameters=given)
        with pytest.raises(MissingError, match="never stored"), open_search(store, record, means):
            pass
    with open_search(store, record, replace(MEANS, parameters=json.dumps(whole))):
        pass


def test_other_answers_hold_for_this_time_as_another_budget_does(folder):
    own = {**LLM, "max_tokens": 9000, "temperature": [0.5], "parameters": {"top_p": 0.9}}
    given = {"command": COMMAND, "llm": own}
    assert trusted(folder, record_of(folder), BOTH, given).options["llm"] == own
    asked = replace(BOTH, options={"command": COMMAND, "llm": {**own, "prompts": "/p"}})
    with pytest.raises(UsageError) as told:
        trusted(folder, record_of(folder), asked, {})
    assert told.value.hint.endswith(
        "--prompts /p --temperature 0.5 --max-tokens 9000 --model-parameters "
        "'{\"top_p\": 0.9}' --price small=1.0,4.0"
    )


@pytest.fixture
def aimed(tmp_path):
    """Plans a search by an objective of the user's own."""
    path = tmp_path / "aim.py"
    mark = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
    path.write_text(mark + "def objective(run):\n    return 1.0\n")
    name = Objective.at(path).name
    (tmp_path / "ran").unlink()
    objective._loaded.cache_clear()
    return replace(PLAN_OF_TESTS, fitness=name)


def test_an_objective_that_this_user_never_named_is_not_run(folder, aimed, tmp_path):
    folder.write(PLAN, aimed.as_object())
    plan = RunPlan.from_object(folder.read(PLAN))
    with pytest.raises(UsageError, match="runs a Python file, and nothing shows") as told:
        trusted(folder, record_of(folder), plan, {})
    assert told.value.hint.endswith(f"--objective {tmp_path / 'aim.py'}")
    with pytest.raises(UsageError, match="runs a Python file"):
        check_objective(folder, record_of(folder), plan)
    assert not (tmp_path / "ran").exists()
    given = {"objective": {"fitness": plan.fitness}}
    assert trusted(folder, record_of(folder), plan, given) == plan


def test_a_sealed_objective_is_this_user_s_wish_and_another_is_not(folder, aimed):
    seal(folder, "one", aimed)
    assert trusted(folder, record_of(folder), aimed, {}) == aimed
    check_objective(folder, record_of(folder), aimed)
    other = replace(aimed, fitness=aimed.fitness.replace("aim.py", "evil.py"))
    with pytest.raises(UsageError, match="runs a Python file"):
        trusted(folder, record_of(folder), other, {})
