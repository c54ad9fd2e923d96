import pytest

from podium.experiments.arguments import in_python


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("--load changes nothing in inflation", "load changes nothing in inflation"),
        ("use --protocol inflation or --protocol rounds",
         'use protocol="inflation" or protocol="rounds"'),
        ("leave such rows out with --skip-bad", "leave such rows out with skip_bad=True"),
        ("no language model is named: add --model NAME",
         "no language model is named: add PODIUM_SEARCH_MODELS NAME"),
        ("podium policies check looks; --tier python avoids compiling",
         "podium policies check looks; PODIUM_COMPILE_TIER=python avoids compiling"),
        ("podium runs list --kind search lists them", "podium runs list --kind search lists them"),
        ('unknown trace "--openb"', 'unknown trace "--openb"'),
        ("a word--of two", "a word--of two"),
    ],
)  # fmt: skip
def test_flags_become_arguments_where_no_command_is_told(told, said):
    assert in_python(told) == said
