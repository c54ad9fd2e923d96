import shlex

import pytest

from podium.settings import (
    MASK,
    Secrets,
    hidden,
    hidden_command,
    is_secret_name,
    known_secrets,
    load_settings,
    secrets_of,
    shown,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("not at http://ada:pw@host:1/v1, twice", f"not at http://{MASK}@host:1/v1, twice"),
        ('("postgresql://ada:pw@db/p")', f'("postgresql://ada:{MASK}@db/p")'),
        ("curl -u ada:pw@host", f"curl -u ada:{MASK}@host"),
        ("{'Authorization': 'Bearer abc def'}", f"{{'Authorization': '{MASK}'}}"),
        ("sent Bearer abcdef123456 and more", f"sent Bearer {MASK} and more"),
        ("Incorrect API key provided: sk-abcdef12345", f"Incorrect API key provided: {MASK}"),
        ("host=db password=pw dbname=p", f"host=db password={MASK} dbname=p"),
        ("Podium serves at http://127.0.0.1:8080, kept in runs.db", None),
        ("write sqlite:///FILE, postgresql://USER@HOST/DATABASE, or the path of a file", None),
        ("node n1: 12:30 is no time; see https://example.org/@scope/page#part", None),
        ("--tokens 1000 --token-file token.txt", None),
    ],
)  # fmt: skip
def test_what_stands_where_secrets_stand_is_hidden_and_nothing_else(text, shown):
    if shown is None and "#" in text:
        text = shown = text.partition("#")[0]
    assert hidden(text) == (text if shown is None else shown)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("podium search run --store postgresql://ada:pw@db/p --tokens 9",
         f"podium search run --store 'postgresql://ada:{MASK}@db/p' --tokens 9"),
        ("podium search run --command 'llm -m x --key pw'",
         f"podium search run --command 'llm -m x --key '\"'\"'{MASK}'\"'\"''"),
        ("podium search run --seed 7 --command 'llm -m x  -t 0.5'", None),
        ("podium search run --store runs.db --name 'it''s mine'", None),
        ("podium 'not closed", None),
    ],
)  # fmt: skip
def test_a_command_is_shown_without_secrets_and_else_as_it_was(command, shown):
    assert hidden_command(command) == (command if shown is None else shown)


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [
        ("PGPASSWORD", True), ("AWS_SECRET_ACCESS_KEY", True), ("APIKEY", True), ("--key", True),
        ("GITHUB_TOKEN", True), ("X_AUTH", True), ("PWD", False), ("--tokens", False),
        ("KEYBOARD", False), ("MONKEY", False), ("--tls-key", False), ("--token-file", False),
        ("SSH_AUTH_SOCK", False), ("", False),
        ("sig", True), ("x-sig", True), ("sasUrl", False), ("accountSas", True),
        ("private", True), ("access_key_id", True), ("awsAccessKeyId", True), ("session", True),
        ("session-id", True), ("jwt", True), ("cookies", True), ("client_secrets", True),
        ("passphrase", True), ("credential", True), ("authorization", True),
        ("design", False), ("sass", False), ("monkey", False), ("hockey", False),
        ("eos_token_id", False), ("max_tokens", False), ("signature", False), ("id", False),
        ("DESKTOP_SESSION", False), ("XDG_SESSION_ID", False), ("session_seconds", False),
    ],
)  # fmt: skip
def test_names_tell_what_is_secret(name, is_secret):
    assert is_secret_name(name) is is_secret


def test_a_password_that_is_also_a_name_does_not_hide_every_word():
    known = known_secrets({"PODIUM_STORE_URL": "postgresql://podium:podium@localhost/podium"})
    assert known.hide("podium runs list") == "podium runs list"
    assert known.hide("at postgresql://podium:podium@db/x") == f"at postgresql://podium:{MASK}@db/x"


@pytest.mark.parametrize(
    "name",
    ["api_key", "key", "apiKey", "accessToken", "token", "password", "secret", "Authorization",
     "X-API-Key", "bearer", "client_secret", "Cookie", "sig", "sas", "private", "access_key_id",
     "session"],
)  # fmt: skip
def test_entries_are_hidden_by_their_names(name):
    known = Secrets()
    for value in ("hunter22", 12345678, ["hunter22"], {"value": "hunter22", "n": [12345678]}):
        shown = str(known.hide_all({"parameters": [{name: value, "top_p": 0.9, "tokens": 5}]}))
        assert "hunter22" not in shown
        assert "1234" not in shown
        assert "0.9" in shown
        assert "'tokens': 5" in shown
    for nothing in (None, "", True, 0.5):
        assert known.hide_all({name: nothing}) == {name: nothing}
    kept = known.hide_all({name: ["hunter22"]})
    assert known.hide_all(kept) == kept == {name: [MASK]}


@pytest.mark.parametrize(
    "table",
    ['{"key": "hunter22", "top_p": 0.9}', 'key = "hunter22"\ntop_p = 0.9',
     'key = "hunter22"', '{"headers": {"Authorization": "Bearer hunter22"}}',
     '{"a": [{"token": "hunter22"}]}'],
)  # fmt: skip
def test_a_table_is_kept_without_its_secrets(table, monkeypatch):
    command = shlex.join(["podium", "search", "run", "--model-parameters", table])
    assert "hunter22" not in hidden_command(command)
    assert hidden_command(hidden_command(command)) == hidden_command(command)
    assert known_secrets({}, [table]).values == {"hunter22"}
    assert known_secrets({"ANY": table}).values == {"hunter22"}
    monkeypatch.setenv("PODIUM_SEARCH_MODEL_PARAMETERS", table)
    values = {each.path: each.value for each in shown(load_settings())}
    assert "hunter22" not in values["search.model_parameters"]
    assert secrets_of(load_settings(), {}).values == {"hunter22"}


def test_a_table_without_secrets_is_shown_as_it_is():
    for text in ('{"top_p":  0.9}', "top_p = 0.9", "a = b = c", "{not: json"):
        assert hidden_command(shlex.join(["x", text])) == shlex.join(["x", text])


def test_known_secrets_are_not_printed():
    assert "hunter22" not in repr(Secrets(frozenset(["hunter22"])))


@pytest.mark.parametrize(
    "letters", ["a", ":", "=", "@", "a:", "a://", "://", "'", "password=", "é"]
)
def test_a_long_text_is_looked_through_in_no_time(letters):
    text = letters * (400_000 // len(letters))  # half an hour, if it grew by the square
    assert hidden(hidden(text)) == hidden(text)


@pytest.mark.parametrize(
    "word",
    [
        "PRIVATE-TOKEN: X1", "PRIVATE-TOKEN:X1", "--key:X1", "-HX-Token:X1", '{"api_key": "X1"}',
        '{"password":"X1 X1"}', '{"password": "X1\\"X1", "n": 1}', "{'secret': 'X1'}",
        '{"body": "{\\"token\\": \\"X1\\"}"}', "{password: X1}", "X-Secret : X1 X1",
    ],
)  # fmt: skip
def test_what_follows_a_colon_is_hidden_where_secrets_stand(word):
    kept = hidden_command(shlex.join(["generate", "--header", word]))
    assert "X1" not in kept
    assert hidden_command(kept) == kept


def test_sentences_about_tokens_stay_whole():
    for text in ("serve.token: too short", "12 tokens: enough", "key: order"):
        assert hidden(text) == text
