"""Hides secrets in whatever is kept, logged or shown: texts, command lines, nested values.

Two ways go together. What stands where secrets stand is hidden without being known: passwords in
addresses, values of options such as --api-key, entries of tables such as "token", Authorization
headers. What is known to be secret, because it is configured, is hidden wherever it stands and
however it is encoded.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any
from urllib.parse import quote, unquote, unquote_plus

from podium.settings.url import MASK, secrets_in, without_password

SHORTEST = 4
"""Shorter secrets are hidden where secrets stand, but not wherever their letters occur."""

LONGEST_TABLE = 1 << 16
"""Characters of a text that is read as a table to find what is secret in it."""

_ENDS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "credentials", "bearer")
_LAST = frozenset(
    [
        "key", "auth", "authorization", "pass", "credential", "cookie", "cookies", "secrets",
        "passwords", "private", "session", "sessionid", "sig", "sas", "jwt",
    ]
)  # fmt: skip
_IDS = ("access-key-id", "session-id")
_OPEN = ("tls-key", "ssl-key", "desktop-session", "xdg-session-id")
"""Ends of names that stand for files that hold keys, or for what a desktop says of itself."""
_ACCOUNTS = frozenset(["-u", "--user", "--proxy-user"])  # user:password, as curl takes them
_PROGRAMS = frozenset(["starters"])  # the texts of candidates in the plan of a run
_COMMON = frozenset(["podium", "postgres", "postgresql", "localhost", "true", "false", "none"])

# Bounded, all of them: a stranger's text must not take long to look through.
_SCHEME = re.compile(r"[A-Za-z][\w+.-]{0,30}://")
_ADDRESS = re.compile(
    r"(?P<url>[A-Za-z][A-Za-z0-9+.-]{0,30}://\S*?)(?P<end>[\"'`)\]}>,.;:]{0,8}(?=\s|$))"
)
_ACCOUNT = re.compile(
    r"(?<![^\s'\"=(])(?P<user>[^\s:@'\"=]{1,100}):(?!//)[^\s@]{1,1000}@(?=[\w\[])"
)
_HEADER = re.compile(
    r"(?P<name>\b(?:(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|(?:set-)?cookie)\b"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[^\n\"'}]+",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<name>\bbearer\s{1,3})[^\s\"',}]{6,}", re.IGNORECASE)
_NAMES = r"(?:password|passwd|passphrase|secret|token|(?:api|access|private)[-_]?key|credentials)"
_ASSIGNED = re.compile(
    rf"(?P<name>{_NAMES}(?:[\"']?\s{{0,3}}=\s{{0,3}}[\"']?|[\"']?:(?=\S)))[^\s\"'&,;)}}]+",
    re.IGNORECASE,
)
# As JSON has it, also within a text of JSON: the value ends where its quotes do.
_QUOTED = re.compile(
    rf"(?P<name>{_NAMES}\\{{0,9}}[\"']?\s{{0,3}}[:=]\s{{0,3}}(?P<within>\\{{1,9}})?(?P<quote>[\"']))"
    r"(?(within)(?:(?!\\{1,9}[\"'])[^\n])+|(?:\\.|(?!(?P=quote))[^\n])+)",
    re.IGNORECASE,
)
# As headers and YAML have it. "serve.token: too short" is a sentence, "x-token: abc" is not.
_TOLD = re.compile(
    r"(?P<name>(?:passw(?:or)?d|passphrase|(?:api|access|private)[-_]?key|\w[-_](?:secret|token))"
    r"\s{0,3}:\s{1,3})[^\s\"'&,;)}]+",
    re.IGNORECASE,
)
_NAMED = re.compile(r"(?P<name>-{0,2}\w[\w-]{0,99})\s{0,3}:\s{0,3}(?=[^\s/])")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LABEL = re.compile(r"\w[\w-]{0,99}:")
_KEY = re.compile(r"\bsk-[A-Za-z0-9_-]{8,}")


@dataclass(frozen=True)
class Secrets:
    """Known secrets, which are not printed by accident."""

    values: frozenset[str] = field(default=frozenset(), repr=False)

    def hide(self, text: str) -> str:
        """Returns a text without secrets: known ones, and whatever is where secrets usually are."""
        return hidden(self.hide_known(text))

    def hide_known(self, text: str) -> str:
        """Hides known secrets alone: the text may be a program, which must stay the same."""
        return self._pattern.sub(MASK, text) if self._pattern else text

    def hide_command(self, words: Sequence[str]) -> str:
        """Returns a command line without secrets, so that it can be stored."""
        return shlex.join(_hidden_words([self.hide_known(word) for word in words]))

    def hide_all(self, value: Any) -> Any:
        """Hides secrets in a nested value that JSON knows: by name, and in texts but programs."""
        if isinstance(value, str):
            whole = self.hide_known(value)
            return hidden(without_password(whole) if _SCHEME.match(whole) else whole)
        if isinstance(value, Mapping):
            return {name: self._hide_entry(str(name), each) for name, each in value.items()}
        return [self.hide_all(each) for each in value] if isinstance(value, list | tuple) else value

    def _hide_entry(self, name: str, value: Any) -> Any:
        if name == "command" and isinstance(value, str):
            return hidden_command(self.hide_known(value))
        if name in _PROGRAMS:
            return value
        return _masked(value) if is_secret_name(name) else self.hide_all(value)

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        read = (str, unquote, unquote_plus)
        plain = {as_read(value) for value in self.values for as_read in read}
        long = [text for text in plain if len(text.strip()) >= SHORTEST]
        long.sort(key=len, reverse=True)
        return re.compile("|".join(map(_in_any_encoding, long))) if long else None


def hidden(text: str) -> str:
    """Hides what stands in a text where secrets stand.

    >>> hidden("no answer from https://ada:secret@host/v1")
    'no answer from https://********@host/v1'
    """
    text = _ADDRESS.sub(lambda found: without_password(found["url"]) + found["end"], text)
    text = _ACCOUNT.sub(rf"\g<user>:{MASK}@", text)
    for pattern in (_HEADER, _BEARER, _QUOTED, _ASSIGNED, _TOLD):
        text = pattern.sub(rf"\g<name>{MASK}", text)
    return _KEY.sub(MASK, text)


def hidden_command(command: str) -> str:
    """Hides secrets in a command line that was kept as one text.

    >>> hidden_command("podium search run --store 'postgresql://ada:a secret@db/podium'")
    "podium search run --store 'postgresql://ada:********@db/podium'"
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return hidden(command)
    shown = _hidden_words(words)
    return shlex.join(shown) if shown != words else command


def hidden_table(text: str) -> str:
    """Hides secrets in a text that may be a table in JSON or TOML.

    >>> hidden_table('{"top_p": 0.9, "key": "a secret"}')
    '{"top_p": 0.9, "key": "********"}'
    """
    table = _table(text)
    shown = Secrets().hide_all(table)
    return hidden(text) if shown == table else json.dumps(shown, ensure_ascii=False, default=str)


def secrets_within(value: Any) -> Iterator[str]:
    """Lists the texts of a nested value whose names say that they are secret."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from (_texts(each) if is_secret_name(str(name)) else secrets_within(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from secrets_within(each)


def is_secret_name(name: str) -> bool:
    """Returns whether an option, a variable or an entry of this name holds a secret.

    >>> [is_secret_name(name) for name in ("PGPASSWORD", "--api-key", "--tokens", "--token-file")]
    [True, True, False, False]
    """
    words = [word for word in re.split(r"[^a-z]+", _HUMP.sub("-", name).lower()) if word]
    joined = "-".join(words)
    if not words or joined.endswith(_OPEN):
        return False
    return words[-1] in _LAST or words[-1].endswith(_ENDS) or joined.endswith(_IDS)


def known_secrets(
    environ: Mapping[str, str], words: Iterable[str] = (), others: Iterable[str | None] = ()
) -> Secrets:
    """Gathers what is secret in an environment, in the words of a command line, and beside them."""
    found = {value for value in others if value}
    for name, value in environ.items():
        found.update([value.strip()] if is_secret_name(name) else secrets_of_address(value))
    words = list(words)
    found.update(*map(secrets_of_address, words), _values_of_options(words))
    found.update(*map(secrets_of_table, (*words, *environ.values())))
    return Secrets(frozenset(found - _COMMON))


def secrets_of_address(address: str) -> set[str]:
    """Returns the secrets of an address that do not also appear openly in it."""
    start = _SCHEME.search(address)
    if start is None:
        return set()
    url = address[start.start() :]
    shown = set(re.split(r"[^\w]+", without_password(url)))
    return {each for each in secrets_in(url) if each not in shown}


def _table(text: str) -> dict[str, Any]:
    """Reads a table in JSON or TOML; what is none reads as empty."""
    import tomllib

    is_json = text.lstrip().startswith("{")
    if len(text) > LONGEST_TABLE or not (is_json or "=" in text):
        return {}
    try:
        found = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _masked(value: Any) -> Any:
    """Hides every text and number of a value; nothing, truths and measures are no secrets."""
    if isinstance(value, Mapping):
        return {name: _masked(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each) for each in value]
    return value if value in (None, "") or isinstance(value, bool | float) else MASK


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield re.sub(r"(?i)^bearer\s+", "", str(value).strip())


def secrets_of_table(text: str) -> set[str]:
    """Returns the secrets of a text that may be a table in JSON or TOML."""
    return set(secrets_within(_table(text)))


def _hidden_words(words: Sequence[str]) -> list[str]:
    shown: list[str] = []
    before = ""
    for word in words:
        is_value = before.startswith("-") and "=" not in before and not word.startswith("--")
        if (is_value or _LABEL.fullmatch(before)) and is_secret_name(before):
            shown.append(MASK)
        elif before in _ACCOUNTS and ":" in word:
            shown.append(f"{word.partition(':')[0]}:{MASK}")
        else:
            shown.append(_hidden_word(word))
        before = word
    return shown


def _hidden_word(word: str) -> str:
    table = _table(word)
    if len(table) > 1 or (table and word.lstrip().startswith("{")):
        return hidden_table(word)
    name, equals, value = word.partition("=")
    if equals and re.fullmatch(r"[\w-]+\s*", name):
        return f"{name}={MASK if is_secret_name(name) and value else _hidden_word(value)}"
    if _SCHEME.match(word):
        return without_password(word)
    if (named := _NAMED.match(word)) and is_secret_name(named["name"]):
        return f"{named[0]}{MASK}"
    if header := _HEADER.match(word) or _BEARER.match(word):
        return f"{header['name']}{MASK}"  # to the end of the word, whatever stands there
    try:
        inner = shlex.split(word) if re.search(r"\s", word) else []
    except ValueError:
        inner = []
    if len(inner) > 1:  # a command within a command
        shown = _hidden_words(inner)
        return hidden(shlex.join(shown) if shown != inner else word)
    return hidden(word)


def _values_of_options(words: list[str]) -> set[str]:
    pairs = [(word.partition("=")[0], word.partition("=")[2]) for word in words]
    pairs += [pair for pair in pairwise(words) if "=" not in pair[0]]
    return {value for name, value in pairs if name.startswith("-") and is_secret_name(name)} - {""}


def _in_any_encoding(text: str) -> str:
    """Writes a pattern for a text: plain, percent-encoded, or escaped, letter by letter."""
    return "".join(f"(?:{'|'.join(_spellings(letter))})" for letter in text)


def _spellings(letter: str) -> list[str]:
    encoded = quote(letter.encode("utf-8", "surrogatepass"), safe="")
    if len(encoded) == 1:
        encoded = f"%{ord(letter):02X}"
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    escapes = "".join(rf"\\+u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    found = [re.escape(letter), f"(?i:{re.escape(encoded)})", escapes]
    if not letter.isprintable() or letter in "\\'\"":
        found += [re.escape(repr(letter)[1:-1]), rf"\\+{re.escape(letter)}"]
    if letter == "'":
        found.insert(0, re.escape("'\"'\"'"))
    return [*found, r"\+"] if letter == " " else found
