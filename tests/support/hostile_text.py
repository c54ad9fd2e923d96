"""Holds texts that want to be more than texts: code, line ends, escape sequences, markup."""

import builtins

from hypothesis import strategies as st

MARK = "podium_ran_a_text"
"""An attribute of `builtins` that hostile texts set where they are run as code."""

_CODE = f"import builtins;builtins.{MARK}=1"
LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
ESCAPES = (
    "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\", "\x9b31m",
    "\x9d0;t\x9c", "a\bb", "a\rb", "\x7f", "\x00", "\u202egnp.exe", "\u2066x\u2069", "\u200bx",
)  # fmt: skip
"""What a terminal acts upon, or shows as something else than it is."""

BREAKERS = (
    f'x""";{_CODE};"""y', f"x''';{_CODE};'''y", f'x";{_CODE};"y', f"x';{_CODE};'y",
    f'"""\n{_CODE}\n"""', f"\n{_CODE}\n#", f"\r{_CODE}\r#", f"\r\n{_CODE}",
    *(f"{end}{_CODE}{end}" for end in LINE_ENDS), '"', '""', '"""', '""""', '"""""', "'''",
    "\\", "\\\\", 'a\\"', '\\"""', "{}", "{0.__class__}", "%s", "%(x)s", "\\N{BULLET}", "\\x",
    "\\u", "\ud800", "\udcff", "\x00", "[red]x[/red]", "[link=http://x]y[/link]",
    "# -*- coding: utf-7 -*-", "+AG8-", "a" * 5000, *ESCAPES,
)  # fmt: skip
"""What breaks out of quotes and comments, or fails on its way into them."""

_pieces = st.sampled_from([*BREAKERS, *LINE_ENDS, '"', "'", "\\", "#", ";", " ", _CODE])
hostile_texts = st.one_of(
    st.sampled_from(BREAKERS),
    st.lists(_pieces, max_size=6).map("".join),
    st.text(alphabet=st.characters(exclude_categories=()), max_size=40),
)


def was_run():
    """Tells whether a hostile text was run as code."""
    return hasattr(builtins, MARK)
