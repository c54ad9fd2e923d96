import hashlib
import re
from base64 import b64encode

import pytest

from podium.service.http.page import page_of
from podium.service.http.page.words import in_words
from podium.service.learning.requests import EXAMPLES
from support.service import Service


@pytest.fixture
def service(tmp_path):
    with Service(tmp_path) as made:
        yield made


@pytest.fixture
def page(service):
    return service.get("/docs").body.decode()


def test_every_route_and_every_field_is_described(service, page):
    document = service.app.openapi()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<h2><code>{method.upper()} {path}</code></h2>" in page
    for name, schema in document["components"]["schemas"].items():
        assert page.count(f"<h4>{name}</h4>") == 1
        for field in schema.get("properties", {}):
            assert f"<td><code>{field}</code></td>" in page


def test_links_lead_to_places_on_the_page(page):
    places = re.findall(r'id="([^"]+)"', page)
    assert len(set(places)) == len(places)
    wanted = set(re.findall(r'href="#([^"]+)"', page))
    assert wanted
    assert wanted <= set(places)


def test_nothing_is_fetched_from_elsewhere(page):
    assert not re.search(r"https?://|src=|@import|url\(", page)


@pytest.mark.parametrize(
    ("path", "title"), [(path, title) for path, titles in EXAMPLES.items() for title in titles]
)
def test_the_examples_are_answered(service, path, title):
    assert service.post(path, EXAMPLES[path][title]).status == 200


def test_an_example_is_there_to_be_tried(page):
    assert page.count("<textarea") == len(EXAMPLES)
    assert "&quot;job_type&quot;: &quot;train-bert&quot;" in page


def test_what_a_description_says_is_no_markup():
    reply = {"200": {"content": {"application/json": {"schema": {"type": "<i>"}}}}}
    operation = {"description": "<script>alert(1)</script>", "responses": reply}
    found = page_of(
        {"info": {"title": "<b>", "version": "1"}, "paths": {"/<u>": {"get": operation}}}
    )
    for tag in ("<b>", "<i>", "<u>", "<script>alert"):
        assert tag not in found


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "number", "minimum": 0, "maximum": 1e15}, "number, 0 to 1e+15"),
        ({"type": "integer", "minimum": 1}, "integer, at least 1"),
        ({"type": "number", "maximum": 2}, "number, at most 2"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"type": "array", "items": {"$ref": "#/x/Job"}}, 'list of <a href="#job">Job</a>'),
        ({"const": "ok", "type": "string"}, "<code>ok</code>"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({}, "anything"),
    ],
)
def test_a_schema_is_said_in_words(schema, words):
    assert in_words(schema) == words


@pytest.mark.parametrize("tag", ["style", "script"])
def test_a_browser_runs_nothing_but_what_belongs_to_the_page(service, page, tag):
    policy = service.get("/docs").headers["content-security-policy"]
    (own,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"{tag}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not re.search(r" (style|on[a-z]+)=", page)
