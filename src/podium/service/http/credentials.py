"""Reads the token and checks the files of TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

from podium.errors import InputError, UsageError
from podium.files.text_file import read_text
from podium.settings import Serve

SHORTEST_TOKEN = 16
MOST_TOKEN_BYTES = 2**13
_PATH_HINT = "check the path and its permissions"


def read_token(serve: Serve) -> str | None:
    """Reads the bearer token; returns None where callers need none.

    Raises:
        UsageError: it is set twice, or is too short to be a secret.
        InputError: its file cannot be read.
    """
    if serve.token is not None and serve.token_file is not None:
        problem = "the token is set twice"
        raise UsageError(problem, hint="set serve.token or serve.token_file, not both")
    if serve.token_file is None:
        return None if serve.token is None else _checked(serve.token, "setting serve.token")
    try:
        text = read_text(serve.token_file, MOST_TOKEN_BYTES)
    except InputError as error:
        problem = f"the token cannot be read: {error.message}"
        raise InputError.at(serve.token_file, problem, hint=_PATH_HINT) from error
    return _checked(text, str(serve.token_file))


def check_tls(serve: Serve) -> bool:
    """Checks the files of TLS; returns whether connections are encrypted.

    Raises:
        UsageError: only one of certificate and key is set.
        InputError: a file cannot be read, or they do not belong together.
    """
    if serve.tls_cert is None and serve.tls_key is None:
        return False
    if serve.tls_cert is None or serve.tls_key is None:
        hint = "give --tls-cert and --tls-key"
        raise UsageError("TLS needs a certificate and its key", hint=hint)
    for path in (serve.tls_cert, serve.tls_key):
        _check_file(path)
    try:
        ssl.create_default_context().load_cert_chain(serve.tls_cert, serve.tls_key, _no_password)
    except (ssl.SSLError, ValueError) as error:
        problem = "certificate and key cannot be used together"
        hint = "use PEM files, and a key without a password"
        raise InputError.at(serve.tls_cert, problem, hint=hint) from error
    return True


def _checked(token: str, where: str) -> str:
    secret = token.strip()
    is_plain = secret.isascii() and secret.isprintable() and " " not in secret
    if len(secret) < SHORTEST_TOKEN or not is_plain:
        raise UsageError(
            "the token is too weak",
            where=where,
            hint=f"use at least {SHORTEST_TOKEN} letters and digits, such as openssl rand -hex 32",
        )
    return secret


def _check_file(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise InputError.at(path, problem, hint=_PATH_HINT) from error


def _no_password() -> str:
    # Without this, OpenSSL would ask at the terminal.
    raise ValueError("the key has a password")
