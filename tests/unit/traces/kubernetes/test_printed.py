import io

import pytest

from podium.traces.kubernetes.printed import Printed

LIST = "apiVersion: v1\nitems:\n- apiVersion: v1\n"


def printed(text):
    stream, parts = Printed(io.StringIO(text)), []
    while part := stream.read(10):
        parts.append(part)
    return "".join(parts)


def test_unread_blocks_become_empty_lines_in_what_kubectl_printed():
    text = (
        "  metadata:\n    managedFields:\n    - apiVersion: v1\n      fieldsV1:\n        f:a: {}\n"
        "    name: a\n  spec:\n    containers:\n    - args:\n      - x\n      env:\n"
        "      - name: A\n        value: |\n          b\n      name: c\n    - env: []\n"
    )
    assert printed(LIST + text) == LIST + (
        "  metadata:\n    managedFields:\n\n\n\n"
        "    name: a\n  spec:\n    containers:\n    - args:\n\n      env:\n"
        "\n\n\n      name: c\n    - env: []\n"
    )


@pytest.mark.parametrize("head", ["", "# by hand\n", "kind: List\nitems:\n- apiVersion: v1\n"])
def test_what_people_write_stays_as_it_is(head):
    text = head + "  spec:\n    env:\n    - name: a\n"
    assert printed(text) == text


@pytest.mark.parametrize("size", [45, 70, 100])
def test_parts_of_a_text_are_cut_between_objects(monkeypatch, size):
    monkeypatch.setattr("podium.traces.kubernetes.printed._CHUNK_CHARACTERS", size)
    objects = "".join(
        f"  env:\n  - a\n  name: n{number}\n- apiVersion: v1\n" for number in range(9)
    )
    expected = "".join(f"  env:\n\n  name: n{number}\n- apiVersion: v1\n" for number in range(9))
    assert printed(LIST + objects) == LIST + expected
