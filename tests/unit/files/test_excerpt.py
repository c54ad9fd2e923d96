import pytest

from podium.files.excerpt import excerpt


def shared(levels):
    value = ["x"]
    for _ in range(levels):
        value = [value] * 9
    return value


@pytest.mark.parametrize(
    "value",
    ["x" * 10**7, list(range(10**6)), shared(40), {"k": shared(40)}, 1 << 10**6],
    ids=["text", "list", "shared", "mapping", "number"],
)
def test_a_large_value_is_shown_in_short(value):
    assert len(excerpt(value)) <= 60


def test_texts_are_quoted_as_wanted():
    assert excerpt("a\nb") == r"'a\nb'"
    assert excerpt("a\nb", quote='"') == '"a b"'
    assert excerpt("kind", quote="") == "kind"
    assert excerpt([1, "a"]) == "[1, 'a']"
