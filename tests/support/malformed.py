"""Makes bodies that no route can take."""

import json

from support.service import ASSIGN, JSON, OBSERVE, SCORE

BODIES = {"/v1/score": SCORE, "/v1/observe": OBSERVE, "/v1/assign": ASSIGN}
BAD_NUMBERS = ["NaN", "Infinity", "-Infinity", "1e999", "-1", "9" * 400, "-0.5", "0x10", "01"]
WRONG = [None, True, 7, -1.5, "", "text", [], {}, [[]], [None], {"a": {"b": []}}, [{}], "x" * 300]


def malformed(draw, count):
    """Gives paths, bodies and headers from a random generator, every kind in turn."""
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        path = draw.choice(list(BODIES))
        body, headers = kind(draw, path)
        yield path, body, headers


def noise(draw, _path):
    return draw.randbytes(draw.randint(0, 300)).replace(b"{", b"\xff"), JSON


def cut(draw, path):
    text = json.dumps(BODIES[path]).encode()
    return text[: draw.randint(0, len(text) - 1)], JSON


def nested(draw, path):
    depth = draw.choice([250, 1000, 20_000])
    opening, closing = draw.choice([(b"[", b"]"), (b'{"a":', b"}")])
    deep = opening * depth + b"0" + closing * depth
    name = draw.choice([*BODIES[path], "other"]).encode()
    return draw.choice([deep, b'{"' + name + b'":' + deep + b"}"]), JSON


def encoded(draw, path):
    text = json.dumps(BODIES[path])
    whole = text.encode()
    return draw.choice(
        [
            text.encode("utf-16"),
            text.encode("utf-32"),
            b"\xef\xbb\xbf" + whole,
            whole.replace(b"{", b'{"\xff\xfe": 1, ', 1),
            whole.replace(b"{", b'{"\\ud800": 1, ', 1),
            whole.replace(b'"', b'"\xc0\xaf', 1),
            whole + b"\x00",
            whole + whole,
        ]
    ), JSON


def number(draw, path):
    """Puts a number where none, or not this one, belongs."""
    bad = draw.choice(BAD_NUMBERS)
    if path == "/v1/assign":
        body = json.dumps({**ASSIGN, "capacities": "HERE"})
    elif path == "/v1/observe":
        body = json.dumps({**OBSERVE, "measured_runtime_s": "HERE"})
    else:
        body = json.dumps({**SCORE, "features": {"batch_size": "HERE"}})
    return body.replace('"HERE"', bad).encode(), JSON


def stranger(draw, path):
    """Adds a field that nobody knows."""
    name = draw.choice(["job_typ", "Job_Type", "extra", "__proto__", "jobtype", " job_type"])
    return json.dumps({**BODIES[path], name: draw.choice(WRONG)}).encode(), JSON


def lacking(draw, path):
    """Leaves out a field that is needed."""
    needed = {
        "/v1/score": ["job_type", "candidate_gpu_types"],
        "/v1/observe": ["job_type", "gpu_type", "measured_runtime_s"],
        "/v1/assign": ["costs", "capacities"],
    }[path]
    left = {**BODIES[path]}
    for name in draw.sample(needed, draw.randint(1, len(needed))):
        del left[name]
    return json.dumps(left).encode(), JSON


def mistyped(draw, path):
    """Gives a field the wrong type."""
    name = draw.choice(list(BODIES[path]))
    good = BODIES[path][name]
    wrong = draw.choice([value for value in WRONG if _is_wrong(value, good)])
    return json.dumps({**BODIES[path], name: wrong}).encode(), JSON


def _is_wrong(value, good):
    if isinstance(good, list):  # an empty list of rows, or neighbours, may be right
        return not isinstance(value, list) or value in ([None], [{}])
    if isinstance(good, dict):
        return not isinstance(value, dict) or value == {"a": {"b": []}}
    if isinstance(good, float):
        return not isinstance(value, float | int) or isinstance(value, bool) or value < 0
    return value != "text"


def whole(draw, _path):
    """Sends JSON that is no object, or an empty one."""
    return json.dumps(draw.choice([None, 1, "x", [], {}, True, [SCORE]])).encode(), JSON


def long(draw, path):
    """Sends more than is borne."""
    if path == "/v1/assign":
        body = {"costs": [[1]] * 1001, "capacities": [2000]}
    else:
        body = {**BODIES[path], "colocated_job_types": ["a"] * 1001}
    big = {**BODIES[path], "job_type": "x" * draw.randint(300, 3000)}
    return json.dumps(draw.choice([body, big])).encode(), JSON


def undeclared(draw, path):
    """Says that the body is something else."""
    kind = draw.choice(
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/json; charset=utf-16",
            "application/xml",
            "",
            "json",
        ]
    )
    packed = {**JSON, "content-encoding": draw.choice(["gzip", "br", "zstd"])}
    return json.dumps(BODIES[path]).encode(), draw.choice([{"content-type": kind}, packed, {}])


KINDS = (
    noise, cut, nested, encoded, number, stranger, lacking, mistyped, whole, long, undeclared,
)  # fmt: skip
