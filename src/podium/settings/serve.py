"""Declares the settings of the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from podium.settings.about import about, data

LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class Serve:
    """Where the service listens, whom it answers, and its limits."""

    host: str = field(default="127.0.0.1", metadata=about("address to listen on"))
    port: int = field(
        default=8080,
        metadata=about(
            "port to listen on; 0: any free one",
            at_least=0,
            at_most=65535,
        ),
    )
    components: str = field(
        default="learning",
        metadata=about("components of the service that are switched on, separated by commas"),
    )
    token: str | None = field(
        default=None,
        repr=False,
        metadata=about("bearer token that callers must send", is_secret=True),
    )
    token_file: Path | None = field(
        default=None, metadata=about("file that contains the bearer token")
    )
    tls_cert: Path | None = field(
        default=None, metadata=about("certificate chain, a PEM file; needs the key too")
    )
    tls_key: Path | None = field(
        default=None, metadata=about("private key of the certificate, a PEM file")
    )
    log_level: str = field(
        default="info",
        metadata=data("lowest level that is logged", choices=LOG_LEVELS),
    )
    log_requests: str = field(
        default="problems",
        metadata=data("which requests are logged", choices=("problems", "all")),
    )
    max_body_bytes: int = field(
        default=2**20, metadata=about("largest body of a request", at_least=1024)
    )
    max_batch: int = field(
        default=1000, metadata=about("maximum number of entries in a list of a request", at_least=1)
    )
    max_in_flight: int = field(
        default=1000,
        metadata=about(
            "maximum number of other requests at a time; more get status 503", at_least=1
        ),
    )
    max_observing: int = field(
        default=1000,
        metadata=about(
            "maximum number of observations that wait for the store; more get status 503",
            at_least=1,
        ),
    )
    max_connections: int = field(
        default=2000,
        metadata=about(
            "maximum number of connections; another one replaces the idlest", at_least=1
        ),
    )
    read_limit_s: float = field(
        default=10.0,
        metadata=about(
            "seconds that a request or its body may take to arrive, and an answer to be read",
            above=0,
        ),
    )
    store_limit_s: float = field(
        default=5.0,
        metadata=about("seconds that an observation may wait for the store", at_least=0.1),
    )
    drain_delay_s: float = field(
        default=0.0,
        metadata=about(
            "seconds between turning not ready and closing the port, on shutdown", at_least=0
        ),
    )
    drain_limit_s: float = field(
        default=30.0, metadata=about("seconds that requests have to finish, on shutdown", above=0)
    )
    retention_observations: int = field(
        default=1000,
        metadata=about(
            "observations of each job type and GPU type that stay in the store",
            at_least=1,
        ),
    )
    checkpoint_interval_s: float = field(
        default=300.0,
        metadata=about(
            "seconds between saves of what was learned",
            above=0,
        ),
    )
    poll_s: float = field(
        default=1.0,
        metadata=about("seconds between checks for what other replicas stored", above=0),
    )
