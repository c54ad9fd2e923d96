"""Asks a running service why a pod of the live cluster went where it is."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from podium.cli import figures
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.errors import InputError, MissingError, PodiumError, UsageError

if TYPE_CHECKING:
    from podium.settings import Serve

TIMEOUT_S = 10.0
MOST_BYTES = 2**24
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that a service listens on and that cannot be asked."""

Told = Mapping[str, Any]


class NotExplained(PodiumError):  # noqa: N818 - it is an answer: no
    """The service scored no such pod lately."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """Is where a service listens, and what it wants to see of those who ask."""

    url: str
    token: str | None
    authority: Path | None = None  # a certificate to trust beside those of the machine

    def __post_init__(self) -> None:
        if not _is_address(self.url):
            hint = "give one such as http://127.0.0.1:8080"
            raise UsageError(f'"{self.url}" is not an address', where="--url", hint=hint)

    def get(self, path: str) -> tuple[int, Told]:
        """Asks for one answer; gives its status and its object.

        Raises:
            MissingError: nobody answers there, or somebody other than Podium.
        """
        connection = self._connection()
        try:
            whole = urlsplit(self.url).path.rstrip("/") + path
            connection.request("GET", whole, headers=self._headers())
            reply = connection.getresponse()
            found = json.loads(reply.read(MOST_BYTES))
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
            raise self._failure(error) from error
        finally:
            connection.close()
        if not isinstance(found, dict):
            raise self.stranger()
        return reply.status, found

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=TIMEOUT_S, context=self._trust()
        )

    def _trust(self) -> ssl.SSLContext:
        trust = ssl.create_default_context()
        if self.authority is not None:
            try:
                trust.load_verify_locations(self.authority)
            except OSError as error:
                problem = f"the certificate cannot be read: {error.strerror}"
                hint = "check serve.tls_cert"
                raise InputError.at(self.authority, problem, hint=hint) from error
        return trust

    def _headers(self) -> dict[str, str]:
        token = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {"Accept": "application/json", **token}

    def _failure(self, error: Exception) -> MissingError:
        if isinstance(error, ssl.SSLCertVerificationError):
            problem = f"the certificate of the service is not trusted: {error.verify_message}"
            hint = "set serve.tls_cert to the certificate, or to that of its authority"
            return MissingError(problem, where=self.url, hint=hint)
        if not isinstance(error, OSError):
            return self.stranger()
        return MissingError(
            f"the Podium service does not answer: {error.strerror or error}",
            where=self.url,
            hint="start it with podium serve, or name another with --url; for one in the cluster: "
            "kubectl port-forward -n podium-system deploy/podium 8080",
        )

    def stranger(self) -> MissingError:
        """Says that it is not Podium that answers."""
        hint = "give the address of podium serve with --url"
        return MissingError("what answers there is not Podium", where=self.url, hint=hint)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        return False


def explain_pod(
    ctx: typer.Context,
    pod: Annotated[str, typer.Argument(metavar="POD", help="POD or NAMESPACE/POD.")],
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Namespace of the pod; default: default.", show_default=False
        ),
    ] = "",
    url: Annotated[
        str | None,
        typer.Option(
            "--url", help="Address of the service; default: serve.host and serve.port.",
            show_default=False,
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="File with the bearer token.", show_default=False),
    ] = None,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Explains why a pod of a live cluster went where it is.

    Asks the running service that scores for kube-scheduler. Exits with 1 when it knows nothing
    of the pod.
    """
    settings = read_settings(ctx, {"serve.token_file": token_file})
    named = _named(pod, namespace)
    service = _address(settings.serve, url)
    told = explanation(service, *named)
    if is_json:
        print_json(told)
        return
    try:
        show(Screen(settings.display), told)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = "the answer is not one that this Podium knows"
        hint = "use the version of the service, see GET / there, or print the answer with --json"
        raise MissingError(problem, where=service.url, hint=hint) from error


def _named(pod: str, namespace: str) -> tuple[str, str]:
    before, slash, after = pod.rpartition("/")
    if not after or "/" in before or (slash and not before):
        hint = "give NAMESPACE/POD, or POD and --namespace"
        raise UsageError(f'"{pod}" is not the name of a pod', where="argument POD", hint=hint)
    if before and namespace and before != namespace:
        raise UsageError(
            f"two namespaces are given, {before} and {namespace}",
            where="argument POD, --namespace",
            hint="give one of them",
        )
    return before or namespace or "default", after


def _address(serve: Serve, url: str | None) -> ServiceAddress:
    from podium.service.http.credentials import read_token

    token = read_token(serve)
    if url is not None:
        return ServiceAddress(url, token, serve.tls_cert)
    host = EVERYWHERE.get(serve.host, serve.host)
    shown = f"[{host}]" if ":" in host else host
    scheme = "http" if serve.tls_cert is None else "https"
    return ServiceAddress(f"{scheme}://{shown}:{serve.port}", token, serve.tls_cert)


def explanation(service: ServiceAddress, namespace: str, pod: str) -> Told:
    """Asks for the explanation of a pod.

    Raises:
        NotExplained: the service knows nothing of it.
        MissingError: there is no service that could.
    """
    status, found = service.get(f"/v1/explain/{quote(namespace, '')}/{quote(pod, '')}")
    if status == http.client.OK:
        if not {"candidates", "points", "bound_to"} <= found.keys():
            raise service.stranger()
        return found
    if status == http.client.UNAUTHORIZED:
        hint = "give its token with --token-file, or set serve.token"
        raise MissingError("the service does not accept the token", where=service.url, hint=hint)
    if status == http.client.NOT_FOUND:
        raise _not_found(service, namespace, pod)
    error = found.get("error")
    if not isinstance(error, dict):
        raise service.stranger()
    raise MissingError(
        f"the service cannot explain it now: {error.get('message', status)}", where=service.url,
        hint=str(error.get("hint", "")),
    )  # fmt: skip


def _not_found(service: ServiceAddress, namespace: str, pod: str) -> PodiumError:
    """Tells a pod that is not known from a service that does not score."""
    _, about = service.get("/")
    if about.get("service") != "podium":
        return service.stranger()
    components = str(about.get("settings", {}).get("serve.components", ""))
    if "extender" not in [name.strip() for name in components.split(",")]:
        return MissingError(
            f"the service does not score for kube-scheduler: it runs {components}",
            where=service.url,
            hint='start it with serve.components = "extender"',
        )
    return NotExplained(
        f"nothing is known of pod {namespace}/{pod}",
        where=service.url,
        hint="check its name and its schedulerName, and ask every replica; Podium forgets all but "
        "extender.recent_pods, and is not asked about a pod with a single feasible node",
    )


def show(screen: Screen, told: Told) -> None:
    """Prints how a pod was scored, for people."""
    from podium.cli.policies import words_of_request

    shadow = [f"{policy}: {node or 'no node'}" for policy, node in told["shadow"].items()]
    screen.fields(
        {
            "pod": f"{told['namespace']}/{told['pod']}",
            "asks for": words_of_request(told["request"]),
            "policy": _policy(told),
            "scored at": _scored(told),
            "offered": figures.counted(told["feasible"], "node"),
            "preferred": _preferred(told),
            "bound to": _bound(told),
            **_counted("without points", told.get("without_points", {})),
            **_counted("not offered", told["reasons"]),
            **_gang(told.get("gang")),
            **({"shadow": "; ".join(shadow)} if shadow else {}),
        }
    )
    if told["candidates"]:
        print()
        terms = list(dict.fromkeys(name for of in _terms(told).values() for name in of))
        left = ("CPU milli left", "memory MiB left", "GPU milli left")
        rows = [_row(each, told, terms) for each in told["candidates"]]
        screen.table(["node", "points", "score", *terms, *left], rows)


def _policy(told: Told) -> str:
    is_marked = told["validated"] == "no"
    return f"{told['policy']}, which is not validated" if is_marked else str(told["policy"])


def _scored(told: Told) -> str:
    times = f", the last of {told['calls']:,} times" if told["calls"] > 1 else ""
    at = datetime.fromisoformat(told["scored_at"]).isoformat(" ", "seconds")
    return f"{at}{times}"


def _preferred(told: Told) -> str:
    if not told["best"]:
        return f"no node: {told['reason']}"
    slots = "-".join(map(str, told["gpu_slots"]))
    place = f"{told['best']}, GPU {slots}" if slots else str(told["best"])
    if told["tied"] > 1:
        others = figures.counted(told["tied"] - 1, "other node")
        return f"{place}, and {others} with as many points: kube-scheduler's own scores decide"
    return f"{place}; next {told['runner_up']}" if told["runner_up"] else place


def _bound(told: Told) -> str:
    node = told["bound_to"]
    if not node:
        return "no node yet"
    points = told["points"].get(node)
    if node == told["best"] or points == told["points"].get(told["best"]):
        return f"{node}, as preferred"
    if points is None:
        return f"{node}, which is not among the best"
    return f"{node}, which has {points} points: other plugins outvoted the policy"


def _counted(title: str, reasons: Mapping[str, int]) -> dict[str, object]:
    found = [f"{figures.counted(number, 'node')}: {reason}" for reason, number in reasons.items()]
    return {title: "; ".join(found)} if found else {}


def _gang(gang: Told | None) -> dict[str, object]:
    if gang is None:
        return {}
    domains = ", ".join(gang["domains"])
    return {"gang": f"{gang['namespace']}/{gang['name']}, preferably in {gang['level']} {domains}"}


def _terms(told: Told) -> Mapping[str, Mapping[str, float]]:
    found: Mapping[str, Mapping[str, float]] = told.get("terms", {})
    return found


def _row(candidate: Told, told: Told, terms: Sequence[str]) -> tuple[object, ...]:
    node, score = candidate["node"], candidate["score"]
    own = _terms(told).get(node, {})
    return (
        node + (" *" if candidate["is_chosen"] else ""),
        told["points"][node],
        "none" if score is None else figures.Figure(f"{score:,.6g}"),
        *(
            figures.Figure(f"{own[name]:,.6g}" if name in own else figures.MISSING)
            for name in terms
        ),
        candidate["cpu_milli_left"],
        candidate["memory_mib_left"],
        " ".join(map(str, candidate["gpu_milli_left"])),
    )
