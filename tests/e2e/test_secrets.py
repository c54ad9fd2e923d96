"""A password given in any way is found nowhere afterwards: the real binary, a real PostgreSQL."""

import json
import sqlite3
import subprocess
from urllib.parse import quote, urlsplit

import pytest

from podium.policies.jit import cache_folder
from support.binary import PODIUM, clean_environment, run
from support.chat_server import Answer, error, running_chat_server
from support.postgres import postgres_server
from support.service import SCORE, served

pytestmark = pytest.mark.deep

COMPILED = cache_folder()  # read before any test cleans its environment
GIVEN = {
    "PODIUM_SEARCH_WORKERS": "1",
    **({"PODIUM_COMPILE_CACHE": str(COMPILED)} if COMPILED else {}),
}
HEAD, TAIL = "Zq7xWv", "9kXjQz"
SECRET = f"{HEAD}@:/?#[]&= %é'\"{TAIL}"
SMALL = ("--trace", "openb", "--nodes", "32", "--seeds", "1",
         "--evaluations", "12", "--largest", "40", "--tune-every", "0",
         "--batch", "8", "--islands", "2")  # fmt: skip


def is_safe(text):
    return HEAD not in text and TAIL not in text


def podium(folder, *arguments, **environ):
    done = run([*PODIUM, *arguments], folder, **GIVEN, **environ)
    return done, done.stdout + done.stderr


@pytest.fixture(scope="module")
def database():
    """Lends an address with the hostile password; the server trusts whoever comes."""
    with postgres_server() as databases, databases.lent() as address:
        parts = urlsplit(address)
        yield f"postgresql://podium:{quote(SECRET, safe='')}@{parts.path}?{parts.query}"


@pytest.fixture(scope="module")
def searched(database, tmp_path_factory):
    """Holds a run that was begun with the password on the command line."""
    folder = tmp_path_factory.mktemp("secrets")
    done, said = podium(folder, "search", "run", *SMALL, "--store", database, "--name", SECRET)
    assert done.returncode == 0, said
    assert is_safe(said)
    return folder


def test_no_file_of_a_run_holds_the_password(searched):
    files = [path for path in searched.rglob("*") if path.is_file()]
    assert any(path.name == "plan.json" for path in files)
    for path in files:
        content = path.read_bytes()
        assert HEAD.encode() not in content, path
        assert TAIL.encode() not in content, path


@pytest.mark.usefixtures("searched")
def test_no_row_of_the_store_holds_the_password(database):
    from podium.store import open_store

    with open_store(database) as store, store.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT runs::text FROM runs").scalars().all()
        rows += connection.exec_driver_sql("SELECT candidates::text FROM candidates").scalars()
    assert len(rows) > 5
    assert is_safe("".join(rows))
    assert "search run" in rows[0]


@pytest.mark.parametrize(
    "arguments",
    [("runs", "list"), ("runs", "list", "--json"), ("runs", "show", "RUN"),
     ("runs", "show", "RUN", "--json"), ("search", "status", "RUN"),
     ("search", "status", "RUN", "--json"), ("config",), ("config", "--json"), ("doctor",),
     ("doctor", "--json")],
    ids=" ".join,
)  # fmt: skip
def test_nothing_that_is_shown_holds_the_password(database, searched, arguments):
    environ = {"PODIUM_STORE_URL": database, "PODIUM_SERVE_TOKEN": SECRET}
    done, listed = podium(searched, "runs", "list", "--json", **environ)
    run_id = json.loads(done.stdout)[0]["id"]
    words = [run_id if word == "RUN" else word for word in arguments]
    done, said = podium(searched, *words, **environ)
    assert done.returncode == 0, said
    assert is_safe(said + listed)


def mistakes(database):
    """Lists command lines that fail, each in its way, with the password in them."""
    secret = quote(SECRET, safe="")
    return [
        ["runs", "show", "nosuchrun", "--store", database],
        ["runs", "show", database],
        ["runs", "list", "--stor", database],
        ["runs", "list", f"--stor={database}"],
        ["runs", "list", "--store", database.replace("/podium_", "/no_such_database_")],
        ["runs", "list", "--store", f"mysql://ada:{secret}@db/podium"],
        ["runs", "list", "--store", f"postgresql://ada:{SECRET}@127.0.0.1:1/podium"],
        ["runs", "list", "--store", f"postgresql://ada:{secret}@127.0.0.1:1/podium"],
        ["runs", "list", "--store", f"postgresql://ada@127.0.0.1:1/podium?password={secret}"],
        ["runs", "list", "--store", f"sqlite://ada:{secret}@db/podium"],
        ["runs", "list", "--store", f"postgresql:ada:{secret}@db/podium"],
        ["runs", "list", "--store", f"host=db password='{SECRET}'"],
        [database],
        ["search", "run", "--generator", "llm", "--model", "m", "--tokens", "1",
         "--base-url", f"ftp://ada:{secret}@host/v1", "--store", "runs.db"],
        ["search", "run", "--generator", "command", "--command",
         f"no-such-program --api-key '{secret}'", "--store", "runs.db"],
        ["search", "run", "--executor", "ray", "--ray-address", f"ray://ada:{secret}@127.0.0.1:1",
         "--store", "runs.db"],
    ]  # fmt: skip


def test_no_error_and_no_traceback_holds_the_password(database, tmp_path):
    for words in mistakes(database):
        done, said = podium(tmp_path, *words, "--debug", "--json")
        assert done.returncode in (2, 3), said
        assert '"message"' in said
        assert is_safe(said), (words, said)
    assert not [path for path in tmp_path.rglob("*") if not is_safe(path.name)]


@pytest.mark.parametrize(
    "content",
    ['[store]\nurl = ["{0}"]\n', '[store]\nurl = "{0}"\n[serve]\ntoken = ["{1}"]\n',
     '[store]\nurl = "{0}"\nulr = 5\n', '[serve]\ntoken = "{1}"\n[search]\nworkers = "{1}"\n',
     'url = "{0}"\n', '[store\nurl = "{0}"\n'],
)  # fmt: skip
def test_no_error_about_a_settings_file_holds_the_password(database, tmp_path, content):
    (tmp_path / "podium.toml").write_text(content.format(database, SECRET.replace('"', "")))
    for words in (["config"], ["config", "--debug"], ["runs", "list", "--debug"], ["doctor"]):
        _, said = podium(tmp_path, *words)
        assert is_safe(said), said


def test_the_service_neither_logs_nor_tells_the_password_and_the_token(database, tmp_path):
    token = f"{HEAD}0123456789{TAIL}"
    environ = {**GIVEN, "PODIUM_STORE_URL": database, "PODIUM_SERVE_TOKEN": token}
    flags = ("--log-level", "debug", "--store", database)
    with served(tmp_path, *flags, PODIUM_SERVE_LOG_REQUESTS="all", **environ) as process:
        allowed = {"authorization": f"Bearer {token}"}
        replies = [process.get(path, headers=given) for path in ("/", "/docs", "/metrics", "/none")
                   for given in (allowed, {}, {"authorization": f"Bearer {token}x"})]  # fmt: skip
        replies.append(process.post("/v1/score", {**SCORE, "job_type": 5}, headers=allowed))
        process.end()
        assert process.logs
        assert is_safe(json.dumps(process.logs, ensure_ascii=False))
    assert is_safe("".join(str(reply) for reply in replies))


WRITER = """import os, sys
seed = int(os.environ["PODIUM_SEED"])
print("def score(pod, node):")
print("    #", *sys.argv[1:2], *(f"{name}={value}" for name, value in os.environ.items()))
print(f"    return -node.cpu_milli_left / {seed % 97 + 1} - sum(node.gpu_milli_left)")
"""
ASKED = (*SMALL, "--evaluations", "20", "--store", "runs.db", "--generator", "command")


def test_a_command_with_a_key_is_run_whole_kept_without_and_resumed_when_it_is_given_again(
    tmp_path,
):
    checked = f"assert sys.argv[2] == '{HEAD}{TAIL}', 'the key is not there'"
    (tmp_path / "writer.py").write_text(WRITER.replace("sys\n", f"sys\n{checked}\n", 1))
    command = f"python3 writer.py --api-key {HEAD}{TAIL}"
    done, said = podium(tmp_path, "search", "run", *ASKED, "--json", "--command", command)
    assert done.returncode == 0, said
    run_id = json.loads(done.stdout)["run"]
    assert is_safe(said)
    assert "# --api-key " in _kept(tmp_path)
    assert "the key is not there" not in _kept(tmp_path)
    assert is_safe(_kept(tmp_path))
    more = ("search", "resume", run_id, "--evaluations", "24", "--store", "runs.db")
    done, said = podium(tmp_path, *more)
    assert done.returncode == 3
    assert "never stored" in said
    assert "--command" in said
    done, said = podium(tmp_path, *more, "--command", command)
    assert done.returncode == 0, said
    assert is_safe(said + _kept(tmp_path))


def test_keys_among_the_parameters_of_a_model_are_sent_and_kept_nowhere(tmp_path):
    given = {"api_key": SECRET, "auth": {"headers": {"X-Token": f"Bearer {HEAD}-{TAIL}"}},
             "access_key_id": SECRET, "sig": SECRET, "session": SECRET, "top_p": 0.9}  # fmt: skip
    parameters = ("--model-parameters", json.dumps(given))
    with running_chat_server() as server:
        server.script = lambda body: (
            Answer()
            if len(server.calls) % 2
            else error(400, f"no: {body['api_key']} {HEAD}-{TAIL}")
        )
        asked = ("search", "run", *SMALL, "--store", "runs.db", "--generator", "llm", "--model",
                 "m", "--tokens", "300000", "--base-url", server.url, "--json")  # fmt: skip
        done, said = podium(tmp_path, *asked, *parameters)
        assert done.returncode == 0, said
        run_id = json.loads(done.stdout)["run"]
        assert {each["api_key"] for each in server.calls} == {SECRET}
        said += podium(tmp_path, "runs", "show", run_id, "--store", "runs.db", "--json")[1]
        more = ("search", "resume", run_id, "--evaluations", "16", "--store", "runs.db")
        refused, told = podium(tmp_path, *more)
        assert refused.returncode == 3, told
        assert "--model-parameters" in told
        done, resumed = podium(tmp_path, *more, *parameters)
        assert done.returncode == 0, resumed
        assert {each["api_key"] for each in server.calls} == {SECRET}
    assert is_safe(said + told + resumed + _kept(tmp_path))
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert HEAD.encode() not in path.read_bytes(), path


def _kept(folder):
    with sqlite3.connect(folder / "runs.db") as database:
        rows = database.execute("SELECT * FROM runs").fetchall()
        rows += database.execute("SELECT * FROM candidates").fetchall()
    files = [path.read_text(errors="replace") for path in folder.rglob("*.json")]
    return str(rows) + "".join(files)


def test_a_program_sees_the_variables_that_are_named_and_no_others(tmp_path):
    (tmp_path / "writer.py").write_text(WRITER)
    environ = {"PGPASSWORD": SECRET, "DATABASE_URL": f"x://a:{HEAD}@b", "APIKEY": SECRET,
               "MY_MODEL": "tiny"}  # fmt: skip
    done, said = podium(
        tmp_path, "search", "run", *ASKED,
        "--command", "python3 writer.py", "--command-env", "MY_MODEL", **environ,
    )  # fmt: skip
    assert done.returncode == 0, said
    kept = _kept(tmp_path)
    assert is_safe(kept)
    assert "MY_MODEL=" in kept
    assert "PGPASSWORD" not in kept
    assert "DATABASE_URL" not in kept


def test_a_traceback_of_a_bug_holds_no_password(database, tmp_path):
    broken = (
        "from podium.experiments import runs\n"
        "runs.open_runs = lambda settings: int(settings.store.url)\n"
    )
    program = f"{broken}from podium.cli.main import main\nmain()"
    python = PODIUM[0].replace("/podium", "/python")
    done = subprocess.run(
        [python, "-c", program, "runs", "list", "--debug", "--store", database],
        cwd=tmp_path, env=clean_environment(tmp_path), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "ValueError" in done.stderr
    assert is_safe(done.stdout + done.stderr)
