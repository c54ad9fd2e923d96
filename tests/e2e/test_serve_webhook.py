"""The service beside a scheduler: answers in one segment, whatever the loop and the route."""

import json
import socket
import struct
from urllib.parse import urlsplit

import pytest

from support.service import SCORE, served

ASK = {
    "pod": {"metadata": {"name": "p"}, "spec": {"containers": []}},
    "nodes": [
        {
            "metadata": {"name": f"node-{number}"},
            "status": {"allocatable": {"cpu": "8", "memory": "8Gi"}},
        }
        for number in range(50)
    ],
}


def data_segments_in(connection):
    """Counts the segments with data that a connection received: tcpi_data_segs_in of Linux."""
    before = 8 + 24 * 4 + 4 * 8 + 4 * 4  # bytes of struct tcp_info
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, before + 8)
    return struct.unpack_from("=I", info, before)[0]


def answer(connection):
    """Reads one answer."""
    received = b""
    while (end := received.find(b"\r\n\r\n")) < 0:
        received += connection.recv(65536)
    length = int(received[:end].lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    while len(received) < end + 4 + length:
        received += connection.recv(65536)
    return received[end + 4 :]


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux counts segments")
@pytest.mark.parametrize(("path", "body"), [("/score", ASK), ("/v1/score", SCORE)])
def test_an_answer_is_one_segment(tmp_path, path, body):
    environ = {"PODIUM_SERVE_COMPONENTS": "learning,webhook", "PODIUM_EXTENDER_POLICY": "best-fit"}
    sent = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    with served(tmp_path, **environ) as service:
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            for number in range(1, 6):
                connection.sendall(f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent)
                assert json.loads(answer(connection))
                assert data_segments_in(connection) == number
