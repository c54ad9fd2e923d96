"""Who may ask a service that listens on a loopback address and has no token."""

import asyncio

import pytest

from podium.service.http.own_names import OwnNames, is_local
from support.service import JSON, OBSERVE, Service
from support.threaded_service import served_in_thread

TOKEN = "0123456789abcdef0123456789abcdef"
OWN = ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:80", "127.1.2.3"]
OTHERS = ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1",
          "0.0.0.0", "[::1", "a:b", "", "[2001:db8::1]"]  # fmt: skip


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as made:
        yield made


@pytest.mark.parametrize("host", OWN)
def test_loopback_names_are_answered_to(service, host):
    assert service.get("/", {"host": host}).status == 200
    same = {**JSON, "host": host, "origin": f"http://{host}"}
    assert service.post("/v1/observe", OBSERVE, same).status == 200


@pytest.mark.parametrize("host", OTHERS)
@pytest.mark.parametrize("path", ["/", "/healthz", "/v1/observe"])
def test_other_names_are_refused_and_change_nothing(service, host, path):
    before = service.state()
    reply = service.post(path, OBSERVE, {**JSON, "host": host})
    assert (reply.status, reply.error.code) == (421, "misdirected")
    assert service.state() == before


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_pages_from_elsewhere_are_refused(service, origin):
    before = service.state()
    foreign = {**JSON, "host": "127.0.0.1:8080", "origin": origin}
    reply = service.post("/v1/observe", OBSERVE, foreign)
    assert (reply.status, reply.error.code) == (403, "forbidden")
    assert service.state() == before


def test_the_name_that_it_listens_under_is_one_of_its_own():
    assert OwnNames("Workstation").has(b"workstation:8080")


@pytest.mark.parametrize(("flags", "token"), [({"serve.host": "0.0.0.0"}, None), ({}, TOKEN)])
def test_any_name_will_do_beyond_loopback_or_with_a_token(tmp_path, flags, token):
    with Service(tmp_path, flags, token=token) as service:
        foreign = {"host": "podium.ml.svc", "origin": "http://elsewhere"}
        assert service.get("/", {**foreign, "authorization": f"Bearer {token}"}).status == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.1.1", "::1", "localhost"])
def test_loopback_addresses_are_local(host):
    assert is_local(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.1.2.3"])
def test_other_addresses_are_not_local(host):
    assert not is_local(host)


BODY = b'{"pod":{"metadata":{"name":"p"}},"nodes":[]}'


def spoken(url, head):
    """Sends a request with this head, and gives the status of the answer."""

    async def talk():
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + b"connection: close\r\n\r\n" + BODY)
        answer = await reader.read()
        writer.close()
        return int(answer.split()[1])

    return asyncio.run(talk())


def test_the_rule_holds_on_the_wire_and_for_what_is_answered_at_once(tmp_path):
    begin = b"POST /score HTTP/1.1\r\ncontent-type: application/json\r\n"
    begin += b"content-length: %d\r\n" % len(BODY)
    environ = {"PODIUM_SERVE_COMPONENTS": "webhook", "PODIUM_EXTENDER_POLICY": "best-fit"}
    with served_in_thread(tmp_path, **environ) as service:
        own = service.url.removeprefix("http://").encode()
        told = {
            (own,): 200,
            (b"localhost",): 200,
            (b"evil.example",): 421,
            (): 400,
            (own, own): 400,
        }
        for hosts, status in told.items():
            head = begin + b"".join(b"host: %s\r\n" % host for host in hosts)
            assert spoken(service.url, head) == status, hosts
        plain = begin.replace(b"HTTP/1.1", b"HTTP/1.0")
        assert spoken(service.url, plain) == 200
