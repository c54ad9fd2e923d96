"""Sends hostile secrets through everything that keeps, logs or shows commands and addresses."""

import io
import json
import re
import shlex
import traceback
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from podium.cli.failure import fail
from podium.errors import InputError, PodiumError
from podium.evaluation.cases import Case, TrainingSet
from podium.search.generators.command import CommandSettings
from podium.search.generators.llm.endpoint import find_endpoint
from podium.search.generators.llm.settings import LlmSettings
from podium.search.promotion.card import Provenance
from podium.search.run.plan import RunPlan
from podium.search.run.setup import create_run
from podium.service.http.logs import Log
from podium.settings import hidden_command, known_secrets, load_settings, secrets_of, shown
from podium.store import RunRecord, open_store
from podium.store.address import label_of, read_address

HEAD, TAIL = "Zq7xWv", "9kXjQz"
"""Every secret begins and ends so; no encoding changes them, and nothing else contains them."""

TRAINING = TrainingSet((Case(nodes=6, pods=60),))
HOSTILE = "@:/?#[]&=%+ '\"\\$!;<>{}|^~`,.-_*()éß漢🙂\t"
middles = st.text(st.sampled_from(HOSTILE) | st.characters(codec="utf-8", min_codepoint=32))
secrets = middles.map(lambda middle: HEAD + middle + TAIL)


def fully_quoted(text):
    """Encodes whatever is special."""
    return quote(text, safe="")


def quoted_in_small_letters(text):
    """Encodes as some programs do."""
    return re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), quote_plus(text))


spellings = st.sampled_from([fully_quoted, quoted_in_small_letters, quote, str])
FORMS = {
    "authority": "postgresql://ada:{}@db/podium",
    "authority and port": "postgresql://ada:{}@db:5432/podium?sslmode=require",
    "no user": "postgres://:{}@db/podium",
    "no host": "postgresql://ada:{}@/podium?host=/run",
    "option": "postgresql://ada@db/podium?password={}",
    "option and port": "postgresql://db:5432/podium?user=ada&password={}&sslmode=require",
    "key's password": "postgresql://ada@db/podium?sslmode=require&sslpassword={}",
    "encoded name": "postgresql://ada@db/podium?pass%77ord={}",
    "unknown option": "postgresql://ada@db/podium?oauth_client_secret={}",
    "wrong scheme": "mysql://ada:{}@db/podium",
    "sqlite": "sqlite://ada:{}@db/podium",
    "service": "https://ada:{}@models.example/v1",
    "token": "https://{}@models.example/v1",
    "key in a service": "https://models.example/v1?api_key={}&api-version=2",
}
forms = st.sampled_from(sorted(FORMS))


def is_safe(text):
    return HEAD not in text and TAIL not in text


@st.composite
def addresses(draw):
    """Draws an address with a secret in it, and the secret."""
    secret, spelling, form = draw(secrets), draw(spellings), draw(forms)
    written = spelling(secret)
    if spelling in (quote, str):
        # Not encoded, it may well end an option and begin another that is shown.
        assume("option" not in form and "key" not in form and "name" not in form)
    return FORMS[form].format(written)


def commands_with(address):
    """Writes command lines that hold an address, as the words that a process is given."""
    inner = shlex.join(["curl", "-sS", address])
    header = f"curl -H {shlex.quote(f'Authorization: Bearer {address}')} x"
    return [
        ["search", "run", "--store", address, "--tokens", "1000"],
        ["search", "run", f"--store={address}"],
        ["search", "run", "--base-url", address],
        ["search", "run", "--command", inner],
        ["search", "run", "--command", f"sh -c {shlex.quote(inner)}"],
        ["search", "run", "--command", header],
        ["search", "run", "--command", f"env DATABASE_URL={shlex.quote(address)} writer"],
        ["search", "run", "--command", f"writer --api-key {shlex.quote(address)}"],
        ["search", "run", "--command", f"writer --password={shlex.quote(address)}"],
        ["search", "run", "--command", f"env PGPASSWORD={shlex.quote(address)} writer"],
    ]


@settings(max_examples=60, deadline=None)
@given(addresses())
@example("postgresql://ada:" + HEAD + "@" + TAIL + "@db/podium")
@example("postgresql://db:5432/podium?password=" + HEAD + "@" + TAIL)
@example("postgresql://ada:" + HEAD + "?x=1@" + TAIL + "@db/podium")
@example("postgresql://ada:" + HEAD + TAIL)
def test_a_command_is_kept_without_secrets(address):
    known = known_secrets({}, [address])
    for words in commands_with(address):
        kept = known.hide_command(["podium", *words])
        assert is_safe(kept), kept
        assert shlex.split(kept)[:3] == ["podium", "search", "run"]
        assert known.hide_command(["podium", *words]) == kept  # the same however often
        old = hidden_command(shlex.join(["podium", *words]))
        assert is_safe(old), old


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_what_is_hidden_once_stays_as_it_is(address):
    for words in commands_with(address):
        once = hidden_command(shlex.join(words))
        assert hidden_command(once) == once


@settings(max_examples=60, deadline=None)
@given(secrets)
def test_a_known_secret_is_hidden_in_every_encoding(secret):
    known = known_secrets({"PGPASSWORD": secret})
    spelled = [secret, quote(secret, safe=""), quote(secret), quote_plus(secret), repr(secret),
               json.dumps(secret), json.dumps(secret, ensure_ascii=False), shlex.quote(secret),
               quoted_in_small_letters(secret)]  # fmt: skip
    for text in spelled:
        assert is_safe(known.hide(f"the service says {text}, and no more")), text


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Keeps runs in a file."""
    folder = tmp_path_factory.mktemp("secrets")
    with open_store(str(folder / "runs.db")) as kept:
        yield kept, folder


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_runs_plans_and_cards_hold_no_secrets(store, address):
    kept, folder = store
    number = len(kept.runs.all())
    plan = RunPlan(TRAINING, options={
        "command": {"command": shlex.join(["curl", address])}, "llm": {"base_url": address},
    })  # fmt: skip
    for words in commands_with(address)[:4]:
        number += 1
        record = RunRecord(
            f"run{number}", "search", "a name", 0.0,
            {**plan.as_object(), "command": shlex.join(words)}, folder=str(folder / f"{number}"),
        )  # fmt: skip
        create_run(kept, plan, record)
        found = kept.runs.get(record.id)
        assert is_safe(json.dumps([found.settings, found.summary], ensure_ascii=False))
        assert is_safe((folder / f"{number}" / "plan.json").read_text(encoding="utf-8"))
        card = Provenance(command=shlex.join(words))
        assert is_safe(json.dumps(card.as_object(), ensure_ascii=False))
    raw = b"".join(path.read_bytes() for path in folder.glob("runs.db*"))
    assert HEAD.encode() not in raw
    assert TAIL.encode() not in raw


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_settings_are_shown_and_printed_without_secrets(tmp_path_factory, address):
    assume(not any(letter in address for letter in "\0\r\n"))
    folder = tmp_path_factory.getbasetemp()
    environ = {"PODIUM_STORE_URL": address, "PODIUM_SERVE_TOKEN": HEAD + TAIL,
               "PODIUM_SEARCH_BASE_URL": address}  # fmt: skip
    loaded = load_settings(environ=environ, folder=folder / "nowhere")
    assert loaded.store.url == address
    assert is_safe(str([row.value for row in shown(loaded)]))
    assert is_safe(repr(loaded))
    lines = io.StringIO()
    log = Log(lines, secrets=secrets_of(loaded, environ))
    log.logger.error("the store is in trouble", problem=f"no answer from {address}", where=address)
    log.logger.error("it failed", exc_info=RuntimeError(f"no answer from {address}"))
    log.close()
    assert lines.getvalue().count("\n") == 2
    assert is_safe(lines.getvalue())


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_errors_and_tracebacks_hold_no_secrets(address):
    for words in (["runs", "list", "--store", address], ["runs", "show", f"--store={address}"]):
        for error in errors_with(address):
            for more in ([], ["--debug"], ["--debug", "--json"]):
                said = said_by(error, [*words, *more])
                assert is_safe(said), said


def errors_with(address):
    """Makes errors that quote an address, one of them in a chain."""
    yield InputError(f'"{address}" cannot be read', where=address, hint=f"look at {address}")
    yield ValueError(f"invalid literal for int() with base 10: {address!r}")
    chained = PodiumError("the store cannot be used", where="a store")
    chained.__cause__ = OSError(f"could not translate host name {address}")
    yield chained


def said_by(error, arguments):
    """Gives what is printed about an error."""
    with pytest.MonkeyPatch.context() as patch:
        stream = io.StringIO()
        patch.setattr("sys.stderr", stream)
        fail(error, arguments)
    return stream.getvalue()


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_an_address_is_refused_without_quoting_its_secret(address):
    try:
        said = label_of(read_address(address))
    except PodiumError as error:
        said = "".join(traceback.format_exception(error)) + error.hint
    assert is_safe(said), said


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql:/ada:{HEAD}{TAIL}@db/podium",
        f"postgresql:ada:{HEAD}{TAIL}@db/podium",
        f"ada:{HEAD}{TAIL}@db/podium",
        f"host=db user=ada password={HEAD}{TAIL}",
        f"postgresql://ada:{HEAD}{TAIL}",
        f"postgresql://ada@db:{HEAD}{TAIL}/podium",
        f"postgresql://ada:{HEAD}@{TAIL}@db/podium",
        f"sqlite:///runs.db?password={HEAD}{TAIL}",
    ],
)
def test_what_was_meant_as_an_address_becomes_no_file(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PodiumError) as caught:
        open_store(address)
    assert is_safe("".join(traceback.format_exception(caught.value)) + caught.value.hint)
    assert not list(tmp_path.iterdir())


@settings(max_examples=60, deadline=None)
@given(secrets, spellings)
def test_a_service_that_repeats_the_key_does_not_get_it_kept(secret, spelling):
    assume(secret.strip() == secret)
    address = f"https://ada:{quote(secret, safe='')}@models.example/v1"
    endpoint = find_endpoint({"PODIUM_LLM_KEY": secret}, address)
    for text in (spelling(secret), json.dumps({"error": f"bad key {secret}"})):
        assert is_safe(endpoint.scrubbed(f"you sent {text}"))
    asking = LlmSettings(("m",), endpoint.url, endpoint.key, tokens=1)
    assert is_safe(f"{endpoint!r} {asking!r} {asking.place} {asking.as_object()}")


@settings(max_examples=60, deadline=None)
@given(addresses())
def test_a_command_that_cannot_be_read_is_not_quoted_with_its_secret(address):
    try:
        said = str(CommandSettings(f"curl '{address} --url {address}").arguments)
    except PodiumError as error:
        said = "".join(traceback.format_exception(error))
        assume(not any(letter.isspace() for letter in address))
        assert is_safe(said), said
