"""Reads the token and checks the files of TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

from podium.errors import InputError, UsageError
from podium.settings import Serve

SHORTEST_TOKEN = 16


def read_token(serve: Serve) -> str | None:
    """Gives the bearer token, or nothing where callers need none.

    Raises:
        UsageError: it is given twice, or is too short to be a secret.
        InputError: its file cannot be read.
    """
    if serve.token is not None and serve.token_file is not None:
        problem = "the token is given twice"
        raise UsageError(problem, hint="set serve.token or serve.token_file, not both")
    if serve.token_file is None:
        return None if serve.token is None else _checked(serve.token, "setting serve.token")
    try:
        text = serve.token_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = "the token cannot be read"
        raise InputError.at(serve.token_file, problem, hint="look at path and rights") from error
    return _checked(text, str(serve.token_file))


def check_tls(serve: Serve) -> bool:
    """Tells whether connections are encrypted, after a look at the files.

    Raises:
        UsageError: only one of certificate and key is given.
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
        hint = "give PEM files, the key without a password"
        raise InputError.at(serve.tls_cert, problem, hint=hint) from error
    return True


def _checked(token: str, where: str) -> str:
    kept = token.strip()
    if len(kept) < SHORTEST_TOKEN or not kept.isascii() or not kept.isprintable() or " " in kept:
        raise UsageError(
            "the token is no good secret",
            where=where,
            hint=f"give at least {SHORTEST_TOKEN} letters and digits, such as openssl rand -hex 32",
        )
    return kept


def _check_file(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        problem = f"the file cannot be read: {error.strerror}"
        raise InputError.at(path, problem, hint="look at its path and its rights") from error


def _no_password() -> str:
    # Without this, OpenSSL would ask at the terminal.
    raise ValueError("the key has a password")
