"""Makes certificates for 127.0.0.1 that only their maker trusts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from podium.errors import MissingError


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Gives the files of a certificate and its key.

    Raises:
        MissingError: there is no openssl.
    """
    folder.mkdir(exist_ok=True)
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
    ]  # fmt: skip
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError as error:
        raise MissingError(
            "openssl is not installed, and makes the certificate of the control plane",
            hint="install it: apt-get install openssl, dnf install openssl",
        ) from error
    return cert, key
