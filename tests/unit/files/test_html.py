from podium.files.html import html_code, html_fields, html_table

HOSTILE = '<script>alert("x")</script>'


def test_whatever_comes_from_a_file_is_escaped():
    shown = [
        html_fields(HOSTILE, {HOSTILE: HOSTILE}),
        html_table(HOSTILE, [HOSTILE], [(HOSTILE,)]),
        html_code(HOSTILE, HOSTILE),
    ]
    for text in shown:
        assert "<script" not in text
        assert "&lt;script&gt;" in text


def test_a_table_has_its_titles_and_rows():
    assert html_table("t", ["a", "b"], [(1, None)]) == (
        "<table><caption>t</caption><tr><th>a</th><th>b</th></tr>"
        "<tr><td>1</td><td></td></tr></table>"
    )
