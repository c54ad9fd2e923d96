import os
from dataclasses import replace
from pathlib import Path

import pytest

from podium.errors import InputError, UsageError
from podium.kube.local.certificate import make_certificate
from podium.service.http.credentials import check_tls, read_token
from podium.settings import Serve

SECRET = "0123456789abcdef"


def test_without_a_token_there_is_none():
    assert read_token(Serve()) is None


def test_a_token_is_taken_from_its_file_without_the_end_of_the_line(tmp_path):
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    assert read_token(Serve(token_file=file)) == SECRET


@pytest.mark.parametrize("token", ["", "short", "0123456789abcdeé", "01234567 89abcdef"])
def test_a_token_that_is_no_secret_is_refused(token):
    with pytest.raises(UsageError, match="too weak") as caught:
        read_token(Serve(token=token))
    assert not token or token not in str(caught.value)


def test_a_token_that_is_given_twice_is_refused(tmp_path):
    with pytest.raises(UsageError, match="twice"):
        read_token(Serve(token=SECRET, token_file=tmp_path / "token"))


def test_a_token_whose_file_is_away_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_token(Serve(token_file=tmp_path / "token"))


def test_a_token_is_not_waited_for_nor_read_without_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="the token is too weak"):
        read_token(Serve(token_file=tmp_path / "pipe"))
    (tmp_path / "large").write_text("a" * 10_000)
    with pytest.raises(InputError, match="cannot be read: is larger than"):
        read_token(Serve(token_file=tmp_path / "large"))
    with pytest.raises(InputError, match="cannot be read"):
        read_token(Serve(token_file=Path("/dev/zero")))


def test_certificate_and_key_are_tried_before_anybody_connects(tmp_path):
    cert, key = make_certificate(tmp_path)
    assert check_tls(Serve()) is False
    assert check_tls(Serve(tls_cert=cert, tls_key=key)) is True
    other = make_certificate(tmp_path / "other")[1]
    for bad in (other, cert):
        with pytest.raises(InputError, match="together"):
            check_tls(Serve(tls_cert=cert, tls_key=bad))


def test_a_certificate_alone_is_refused(tmp_path):
    cert, key = make_certificate(tmp_path)
    for half in (Serve(tls_cert=cert), Serve(tls_key=key)):
        with pytest.raises(UsageError, match="needs a certificate and its key"):
            check_tls(half)
    with pytest.raises(InputError, match="cannot be read"):
        check_tls(replace(Serve(tls_cert=cert), tls_key=tmp_path / "none.pem"))
