import os
import select
import shlex
import sys

import pytest

from podium.errors import MissingError, UsageError
from podium.search.generators.command import CommandSettings, open_command, passed_on
from podium.search.generators.generator import Exemplar, Failure, Request
from support.chat_server import POLICY, fenced

ENVIRON = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-12", "PODIUM_LLM_KEY": "sk-2"}


@pytest.fixture
def running(tmp_path):
    """Opens generators that run a Python program."""

    def open_(program, **more):
        path = tmp_path / "a program.py"
        path.write_text(program)
        command = shlex.join([sys.executable, "-E", str(path), "an argument"])
        return open_command(CommandSettings(command, **more), ENVIRON)

    return open_


ECHO = f"import sys\nprompt = sys.stdin.read()\nprint({fenced()!r})\n"


def test_a_policy_that_is_printed_becomes_a_proposal(running):
    proposal = running(ECHO).propose(Request((1, 2)))
    assert (proposal.text, proposal.thought, proposal.problem) == (POLICY, "fill nodes up", "")
    assert proposal.source == "command"
    assert proposal.operators == ("start",)
    assert proposal.cost.calls == 1
    assert proposal.cost.seconds > 0
    assert proposal.cost.usd is None


def test_the_program_reads_the_prompt_and_its_arguments(running):
    program = "import sys\nprint('Thought:', sys.argv[1], 'repaired' if 'Gate: syntax' in "
    program += f"sys.stdin.read() else 'not')\nprint({POLICY!r})\n"
    generator = running(program)
    parents = (Exemplar(1, POLICY, 1.0),)
    assert generator.propose(Request((1,), parents)).thought == "an argument not"
    proposal = generator.propose(Request((1,), parents, Failure("x", "syntax", "not Python")))
    assert proposal.thought == "an argument repaired"
    assert "Gate: syntax" in proposal.prompt


def test_a_bare_policy_is_enough(running):
    assert running(f"print({POLICY!r})").propose(Request((1,))).text == POLICY


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import sys; sys.exit('no model loaded')", "exit code 1: no model loaded"),
        ("import os; os._exit(7)", "exit code 7: no reason given"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9"),
        ("print('I would rather not.')", "holds no program"),
        ("pass", "holds no program"),
        ("import sys; sys.stdout.buffer.write(bytes(range(256)))", "holds no program"),
    ],
)
def test_a_program_that_fails_is_a_problem(running, program, problem):
    proposal = running(program).propose(Request((1,)))
    assert proposal.text == ""
    assert problem in proposal.problem


def test_a_program_that_does_not_end_is_ended_with_all_it_started(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    child = f"(echo started; sleep 30) > {shlex.quote(str(path))}"
    command = shlex.join(["sh", "-c", f"{child} & sleep 30"])
    generator = open_command(CommandSettings(command, timeout_s=2.0), ENVIRON)
    assert "did not end within 2 s" in generator.propose(Request((1,))).problem
    assert os.read(pipe, 100) == b"started\n"
    assert select.select([pipe], [], [], 60)[0]  # at its end once nobody holds it open
    assert os.read(pipe, 100) == b""
    os.close(pipe)


def test_a_program_may_print_much_and_read_nothing(running):
    program = f"print({POLICY!r})\nprint('#' * 5_000_000)\n"
    assert running(program).propose(Request((1,))).text.startswith(POLICY)


SHOW = f"import os\nprint('Thought:', sorted(os.environ))\nprint({POLICY!r})\n"


def test_keys_are_not_passed_on_unless_they_are_named(running):
    hidden = running(SHOW).propose(Request((1,))).thought
    assert "PATH" in hidden
    assert "KEY" not in hidden
    shown = running(SHOW, keep=("OPENAI_API_KEY",)).propose(Request((1,))).thought
    assert "OPENAI_API_KEY" in shown
    assert "PODIUM_LLM_KEY" not in shown


def test_only_what_every_program_needs_is_passed_on():
    names = ["PGPASSWORD", "DATABASE_URL", "APIKEY", "GITHUB_TOKEN", "HTTPS_PROXY", "MODEL",
             "PODIUM_STORE_URL", "AWS_PROFILE", "SSH_AUTH_SOCK"]  # fmt: skip
    plain = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV"]
    assert passed_on(dict.fromkeys([*names, *plain], "")).keys() == set(plain)
    assert passed_on(dict.fromkeys(names, ""), ["MODEL"]).keys() == {"MODEL"}


def test_a_variable_that_is_named_and_not_set_is_missed():
    with pytest.raises(MissingError, match="not set in the environment: NO_SUCH_NAME"):
        open_command(CommandSettings("sh", keep=("NO_SUCH_NAME",)), ENVIRON)


def test_a_program_that_prints_its_key_does_not_get_it_kept(running):
    program = (
        "import os, sys\nsys.exit(f'bad key {os.environ[\"OPENAI_API_KEY\"]} at http://a:b@c')"
    )
    problem = running(program, keep=("OPENAI_API_KEY",)).propose(Request((1,))).problem
    assert "bad key ******** at http://********@c" in problem
    printing = f"import os\nprint('Thought:', os.environ['OPENAI_API_KEY'])\nprint({POLICY!r})\n"
    proposal = running(printing, keep=("OPENAI_API_KEY",)).propose(Request((1,)))
    assert proposal.text == POLICY
    assert "sk-12" not in str(proposal)


def test_the_program_gets_a_seed_that_follows_from_the_request(running):
    program = f"import os\nprint('Thought:', os.environ['PODIUM_SEED'])\nprint({POLICY!r})\n"
    generator = running(program)
    first, again, other = (generator.propose(Request((1, i))).thought for i in (1, 1, 2))
    assert first == again != other
    assert first.isdigit()


def test_a_program_that_vanished_is_a_problem(tmp_path):
    path = tmp_path / "program"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    generator = open_command(CommandSettings(str(path)), ENVIRON)
    path.unlink()
    assert "could not be started" in generator.propose(Request((1,))).problem


@pytest.mark.parametrize(
    ("command", "error"),
    [("", UsageError), ("'open", UsageError), ("no-such-program-1 x", MissingError)],
)
def test_a_command_that_cannot_be_run_is_refused_at_once(command, error):
    with pytest.raises(error):
        open_command(CommandSettings(command), ENVIRON)


def test_a_time_limit_is_a_positive_number():
    with pytest.raises(UsageError, match="timeout_s"):
        CommandSettings("x", timeout_s=0.0)


def test_what_is_printed_is_judged(judge, running):
    generator = running(ECHO)
    assert judge.judge(generator.propose(Request((1,))).text).verdict.accepted
    generator.learn("command", 1.0, generator.propose(Request((1,))).cost)
    generator.restore(generator.state())
    generator.close()


def test_a_relative_program_is_that_of_its_folder(tmp_path, monkeypatch):
    for name in ("own", "other"):
        program = tmp_path / name / "writer.py"
        program.parent.mkdir()
        program.write_text(
            f"#!{sys.executable}\nprint({f'Thought: {name}'!r})\nprint({POLICY!r})\n"
        )
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "other")
    settings = CommandSettings("./writer.py", folder=str(tmp_path / "own"))
    assert open_command(settings, ENVIRON).propose(Request((1,))).thought == "own"
    (tmp_path / "own" / "writer.py").unlink()
    with pytest.raises(MissingError, match="there is no program"):
        open_command(settings, ENVIRON)
    with pytest.raises(
        MissingError, match="the folder in which the command was given no longer exists"
    ):
        open_command(CommandSettings("./writer.py", folder=str(tmp_path / "gone")), ENVIRON)
