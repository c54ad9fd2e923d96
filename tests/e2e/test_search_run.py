import json
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from podium.policies.jit import cache_folder
from podium.store import open_store
from support.binary import PODIUM, clean_environment, run
from support.stored import rows

# Read before any test cleans its environment.
COMPILED = cache_folder()
# To start a second worker takes longer than these searches.
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
SMALL = [
    *("--trace", "openb", "--nodes", "32", "--seeds", "1", "--seed", "1007", "--batch", "16"),
    *("--islands", "2", "--largest", "40"),
    *("--tune-every", "2", "--tune-evaluations", "10", "--store", "runs.db", "--time-limit", "60"),
]
EVALUATIONS = ["--evaluations", "70"]
WRITER = '''"""Writes a policy; fails now and then, and must be corrected now and then."""
import os, sys

prompt, seed = sys.stdin.read(), int(os.environ["PODIUM_SEED"])
assert "score(pod, node" in prompt and "SECRET" not in " ".join(os.environ)
if "was refused" not in prompt and seed % 3 == 0:
    sys.exit("the model is busy")
field = "name" if "was refused" not in prompt and seed % 3 == 1 else "cpu_milli"
print("Thought: a weight of my own.")
print(f"""```python
def score(pod, node):
    return -node.cpu_milli_left / {seed % 97 + 1} - sum(node.gpu_milli_left) + pod.{field}
```""")
'''


def start(folder, *arguments):
    """Starts a search in a process of its own."""
    return subprocess.Popen(
        [*PODIUM, "search", *arguments], cwd=folder, env=clean_environment(folder, **GIVEN),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def podium(folder, *arguments, **environ):
    """Runs a search to its end."""
    return run([*PODIUM, "search", *arguments], folder, **GIVEN, **environ)


def podium_runs(folder, *arguments):
    """Runs a verb of runs."""
    return run([*PODIUM, "runs", *arguments], folder, **GIVEN)


def wait_for(process, folder, is_there):
    """Waits until the rows of a run are as wished."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        if (folder / "runs.db").exists():
            with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
                for record in store.runs.all():
                    if is_there(store.candidates.of(record.id)):
                        return record
        time.sleep(0.01)
    raise AssertionError("nothing happened")


def is_in_mid_batch(found):
    """Tells whether some of the later batches, which overlap, are judged and some are not."""
    later = [each for each in found if each.batch >= 1]
    judged = sum(each.state == "judged" for each in later)
    return 2 <= judged < len(later) - 2


def stopped_in_mid_batch(process, folder):
    """Halts a search while a batch is judged."""
    while True:
        record = wait_for(process, folder, is_in_mid_batch)
        process.send_signal(signal.SIGSTOP)
        if any(each.state == "proposed" for each in rows(folder)):
            return record
        process.send_signal(signal.SIGCONT)


def children_of(process):
    """Lists the processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process.pid:
            found.append(path.parent)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Is a search with one worker that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    done = podium(folder, "run", *SMALL, *EVALUATIONS, "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Is the same search with two workers, killed in the middle of a batch, and continued."""
    folder = tmp_path_factory.mktemp("killed")
    process = start(folder, "run", *SMALL, *EVALUATIONS, "--workers", "2")
    record = stopped_in_mid_batch(process, folder)
    told = {
        "second": podium(folder, "resume", record.id, "--store", "runs.db"),
        "running": podium(folder, "status", record.id, "--store", "runs.db", "--json"),
        "deleted": podium_runs(folder, "delete", record.id, "--yes", "--store", "runs.db"),
        "children": children_of(process),
    }
    process.kill()
    process.communicate()
    told["before"] = rows(folder)
    told["status"] = podium(folder, "status", record.id, "--store", "runs.db", "--json")
    told["listed"] = podium_runs(folder, "list", "--store", "runs.db", "--json")
    told["resumed"] = podium(
        folder, "resume", record.id[:6], "--store", "runs.db", "--workers", "2"
    )
    told["after"] = podium(folder, "status", record.id, "--store", "runs.db")
    return folder, told


def test_a_search_tells_what_it_found(whole):
    folder, told = whole
    assert list(told)[:3] == ["run", "ending", "folder"]
    assert told["ending"] == "evaluation budget reached (70)"
    found = rows(folder)
    assert told["candidates"] == len(found)
    assert told["accepted"] == sum(each.accepted for each in found)
    assert sum(told["refused"].values()) == len(found) - told["accepted"]
    assert told["evaluations"] == sum(each.cost.get("evaluations", 0) for each in found) >= 70
    best = next(each for each in found if each.number == told["best"])
    assert (Path(told["folder"]) / "best.py").read_text() == best.text
    assert told["validated"] == told["best"]
    assert 0 < told["validation_fitness"] <= 100
    assert len(told["islands"]) == 2


def test_the_status_shows_the_same(whole):
    folder, told = whole
    done = podium(folder, "status", told["run"], "--store", "runs.db", "--json")
    shown = json.loads(done.stdout)
    assert list(shown)[:4] == ["run", "name", "status", "folder"]
    assert (shown["status"], shown["name"]) == ("finished", "inflation")
    assert {key: shown[key] for key in ("best", "fitness", "evaluations", "islands")} == {
        key: told[key] for key in ("best", "fitness", "evaluations", "islands")
    }
    assert shown["text"] == (Path(told["folder"]) / "best.py").read_text()


def test_a_finished_search_is_not_searched_on_by_itself(whole):
    folder, told = whole
    before = rows(folder)
    done = podium(folder, "resume", told["run"], "--store", "runs.db", "--json")
    assert json.loads(done.stdout)["ending"] == "evaluation budget reached (70)"
    assert rows(folder) == before
    assert json.loads(done.stdout)["validated"] == told["validated"]


@pytest.mark.deep
def test_a_second_process_is_told_that_somebody_is_at_work(killed):
    second = killed[1]["second"]
    assert second.returncode == 2
    assert "another process is working on this run" in second.stderr
    assert json.loads(killed[1]["running"].stdout)["status"] == "running"


def test_a_killed_search_is_shown_as_interrupted(killed):
    assert json.loads(killed[1]["status"].stdout)["status"] == "interrupted"
    assert json.loads(killed[1]["listed"].stdout)[0]["status"] == "interrupted"


def test_a_run_at_work_is_not_deleted(killed):
    assert killed[1]["deleted"].returncode == 2
    assert "another process is working on this run" in killed[1]["deleted"].stderr


def test_no_worker_outlives_a_killed_search(killed):
    workers = killed[1]["children"]
    assert len(workers) >= 2
    deadline = time.monotonic() + 300
    while any(_is_alive(each) for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_is_alive(each) for each in workers)


def _is_alive(path):
    try:
        return path.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_search_loses_nothing_and_judges_nothing_twice(killed):
    folder, told = killed
    assert told["resumed"].returncode == 0, told["resumed"].stderr
    assert any(each.state == "proposed" for each in told["before"])
    after = {each.number: each for each in rows(folder)}
    for each in told["before"]:
        if each.state == "judged":
            assert after[each.number] == each
        else:
            assert after[each.number].text == each.text or each.kind == "tuned"


def test_a_killed_search_finds_what_it_would_have_found(whole, killed):
    assert rows(killed[0]) == rows(whole[0])


def test_people_are_shown_how_a_search_went(killed):
    told = killed[1]
    assert "evaluation budget reached (70)" in told["resumed"].stdout
    assert "against fgd" in told["resumed"].stdout
    assert "def score(pod, node" in told["resumed"].stdout
    assert "finished" in told["after"].stdout
    assert "def score(pod, node" in told["after"].stdout


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_the_like_interrupt_and_say_how_to_go_on(tmp_path, name):
    process = start(tmp_path, "run", *SMALL, "--evaluations", "100000")
    record = wait_for(process, tmp_path, is_in_mid_batch)
    workers = children_of(process)
    process.send_signal(name)
    out, errors = process.communicate(timeout=300)
    assert (process.returncode, out) == (130, "")
    assert f"podium search resume {record.id} continues" in errors
    assert "Traceback" not in errors
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        assert store.runs.get(record.id).status == "interrupted"
    assert workers
    assert not any(_is_alive(each) for each in workers)


@pytest.mark.deep
def test_a_search_whose_workers_are_killed_finds_what_it_would_have_found(whole, tmp_path):
    process = start(tmp_path, "run", *SMALL, *EVALUATIONS, "--workers", "2")
    for _ in range(4):
        record = wait_for(process, tmp_path, is_in_mid_batch)
        for worker in children_of(process):
            os.kill(int(worker.name), signal.SIGKILL)
        seen = len(rows(tmp_path))
        wait_for(process, tmp_path, lambda found, seen=seen: len(found) > seen)
        if len(rows(tmp_path)) > len(rows(whole[0])) - 20:
            break
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert rows(tmp_path) == rows(whole[0])
    with open_store(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        assert store.runs.get(record.id).status == "finished"


@pytest.mark.deep
def test_ctrl_c_while_workers_start_interrupts_too(tmp_path):
    process = start(tmp_path, "run", *SMALL)
    record = wait_for(process, tmp_path, lambda found: not found)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    status = podium(tmp_path, "status", record.id, "--store", "runs.db", "--json")
    assert json.loads(status.stdout)["status"] == "interrupted"


@pytest.mark.deep
def test_any_program_writes_candidates(tmp_path):
    (tmp_path / "writer.py").write_text(WRITER)
    done = podium(
        tmp_path, "run", *SMALL, "--generator", "command", "--command",
        f"{Path(PODIUM[0]).with_name('python')} writer.py", "--evaluations", "60", "--json",
        SOME_SECRET="hidden",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    written = [each for each in found if each.source == "command"]
    assert any("the model is busy" in each.reason for each in written)
    repairs = [each for each in written if each.kind == "repair"]
    refused = [each for each in written if each.kind == "bred" and each.gate == "allow-list"]
    # The last ones find no calls left: models are asked ahead of what is judged.
    assert 0.5 * len(refused) < len(repairs) <= len(refused)
    assert any(each.gate in ("race", "training") for each in repairs)  # repaired, good or not
    assert all("was refused" in each.prompt for each in repairs)
    judged = [each for each in written if each.cases]
    assert judged
    assert {each.thought for each in judged} == {"a weight of my own."}
    assert json.loads(done.stdout)["calls"] == len(written)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "--generator", "gentic"], 'unknown generator "gentic"'),
        (["resume", "nobody"], 'unknown run "nobody"'),
    ],
)
def test_mistakes_are_told_before_anything_starts(tmp_path, arguments, told):
    open_store(str(tmp_path / "runs.db")).close()
    done = podium(tmp_path, *arguments, "--store", "runs.db")
    assert done.returncode == 2
    assert told in done.stderr
    assert not (tmp_path / ".data" / "podium" / "runs").exists()


@pytest.fixture
def own_traces(tmp_path):
    """Writes a cluster of one's own as manifests, and another under names of original files."""
    for path in ("own/cluster.yaml", "openb/made.csv"):
        (tmp_path / path).parent.mkdir()
        command = [*PODIUM, "traces", "generate", path, "--nodes", "6", "--pods", "40"]
        assert run(command, tmp_path).returncode == 0
    made = tmp_path / "openb"
    (made / "made-nodes.csv").rename(made / "openb_node_list_gpu_node.csv")
    (made / "made-pods.csv").rename(made / "openb_pod_list_cpu050.csv")
    return tmp_path


@pytest.mark.deep
@pytest.mark.parametrize(
    ("given", "environ"),
    [
        (["--trace", "own/cluster.yaml"], {}),
        (["--trace", "./own"], {}),
        (["--trace", "openb:cpu050", "--traces", "openb"], {}),
        (["--trace", "openb:cpu050"], {"PODIUM_TRACES": "openb"}),
    ],
    ids=["file", "folder", "flag", "variable"],
)
def test_a_relative_path_leads_to_the_trace_from_the_folder_of_a_worker_too(
    own_traces, given, environ
):
    few = ["--seeds", "1", "--store", "runs.db", "--json"]
    done = podium(own_traces, "run", "--evaluations", "4", *few, *given, **environ)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"] == 4


@pytest.mark.deep
def test_arms_are_compared_on_a_relative_path(own_traces):
    given = ["--trace", "own/cluster.yaml", "--runs", "1", "--evaluations", "20", "--seeds", "1"]
    done = podium(own_traces, "compare", "random", *given, "--store", "runs.db", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["evaluations"] <= 20


@pytest.fixture
def begun(tmp_path):
    """Is a short run whose candidates a program writes."""
    (tmp_path / "writer.py").write_text(WRITER)
    given = ("--generator", "command", "--command", "python3 writer.py", "--evaluations", "12")
    done = podium(tmp_path, "run", *SMALL, *given, "--json")
    assert done.returncode == 0, done.stderr
    return tmp_path, json.loads(done.stdout)["run"], Path(json.loads(done.stdout)["folder"])


@pytest.mark.deep
def test_a_program_that_somebody_wrote_into_a_run_is_shown_and_never_started(begun):
    folder, run_id, its_folder = begun
    more = ("resume", run_id, "--evaluations", "20", "--store", "runs.db")
    own = json.loads((its_folder / "plan.json").read_text())
    planted = f"touch {folder / 'pwned'}"
    options = {"command": {"command": planted, "keep": ["HOME"]}}
    (its_folder / "plan.json").write_text(json.dumps({**own, "options": options}))
    done = podium(folder, *more)
    assert done.returncode == 2
    assert f"at:  runs {planted}, which sees HOME" in done.stderr
    assert f"podium search resume {run_id} --command '{planted}' --command-env HOME" in done.stderr
    assert not (folder / "pwned").exists()
    shown = podium_runs(folder, "show", run_id, "--store", "runs.db")
    assert f"runs {planted}, which sees HOME" in shown.stdout
    (its_folder / "plan.json").write_text(json.dumps(own))
    done = podium(folder, *more)  # one's own run needs no word
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
def test_a_run_that_is_resumed_elsewhere_runs_the_program_of_its_own_folder(begun):
    folder, run_id, _ = begun
    other = folder / "other"
    other.mkdir()
    (other / "writer.py").write_text(f"open({str(folder / 'pwned')!r}, 'w')\n")
    done = podium(
        other, "resume", run_id, "--evaluations", "20", "--store", str(folder / "runs.db"),
        XDG_DATA_HOME=str(folder / ".data"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not (folder / "pwned").exists()


@pytest.mark.deep
def test_a_run_without_a_seal_goes_on_when_its_program_is_named_again(begun):
    folder, run_id, its_folder = begun
    (its_folder / "seal").unlink()
    more = ("resume", run_id, "--evaluations", "20", "--store", "runs.db")
    assert podium(folder, *more).returncode == 2
    done = podium(folder, *more, "--command", "python3 writer.py")
    assert done.returncode == 0, done.stderr
    assert podium(folder, *more).returncode == 0


@pytest.mark.deep
def test_a_store_does_not_choose_where_a_run_is_written(begun):
    folder, run_id, its_folder = begun
    planted = folder / "planted" / run_id
    planted.mkdir(parents=True)
    plan = json.loads((its_folder / "plan.json").read_text())
    plan |= {"generators": [["genetic", 1.0]], "options": {}}
    (planted / "plan.json").write_text(json.dumps(plan))
    with open_store(f"sqlite:///{folder / 'runs.db'}") as store:
        record = store.runs.get(run_id)
        store.runs.delete(run_id)
        store.runs.create(replace(record, folder=str(planted)))
    more = ("resume", run_id, "--evaluations", "20", "--store", "runs.db")
    done = podium(folder, *more)
    assert done.returncode == 2
    assert "outside the folder for runs" in done.stderr
    assert f"PODIUM_SEARCH_FOLDER={planted.parent} podium search resume {run_id}" in done.stderr
    assert sorted(path.name for path in planted.iterdir()) == ["plan.json"]
    done = podium(folder, *more, PODIUM_SEARCH_FOLDER=str(planted.parent))
    assert done.returncode == 0, done.stderr
