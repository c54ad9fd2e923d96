"""Whatever a file says stays a text in every source that is generated from it."""

import ast
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from podium.policies.language.literal import comment, docstring, documented, literal
from podium.policies.scheduler_config import load_scheduler_config
from podium.policies.scheduler_config.plugin_text import Enabled, policy_text
from podium.policies.scheduler_config.plugins import PLUGINS
from podium.policies.scheduler_config.section import Section
from podium.search.program.expression import field
from podium.search.program.program import Block, Program
from podium.search.program.reader import parse
from podium.search.program.writer import write
from podium.search.promotion import policy_file
from podium.search.promotion.reduction import Reduced
from support.depth import with_deep
from support.hostile_text import hostile_texts, was_run

HARMLESS = "harmless"
_DECIDING = "def score(pod, node):\n    return 7.5 * node.cpu_milli_left\n"
_NO_ARGUMENTS = Section(Path("x.yaml"), "", {})


def scheduler_name(text):
    """Loads a configuration whose scheduler has this name, as `podium simulate` does."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": text}, {"schedulerName": text}],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scheduler.json")
        path.write_text(json.dumps(document), encoding="utf-8")
        return load_scheduler_config(path).source.text


def origin_of_a_pair_policy(text):
    return policy_text(_enabled("NodeResourcesFit"), [], "best", text)


def origin_of_a_cluster_policy(text):
    return policy_text(_enabled("Simon", "RandomScore"), [], "best", text)


def summary_of_a_program(text):
    return write(Program(Block((), field("node.cpu_milli_left")), summary=text))


def setting_of_a_program(text):
    program = Program(Block((), field("node.cpu_milli_left")), settings=(("TIES", text),))
    return write(program)


def _reduced(text, program=None):
    return Reduced(text, 0.0, 0.0, 9, 9, 1, (), program)


def card_of_a_policy(text):
    return policy_file.policy_text(_reduced(_DECIDING, parse(_DECIDING)), text)


def card_of_an_uncut_policy(text):
    return policy_file.policy_text(_reduced(_DECIDING), text)


def setting_of_a_promoted_policy(text):
    return policy_file.policy_text(_reduced(f"TIES = {literal(text)}\n{_DECIDING}"), "Packs.")


def literals(text):
    lines = ["def f():", *docstring(text, "    "), f"    return {literal(text)}"]
    return "\n".join([*documented([text, text]), *comment(text), *lines, *comment(text, "    ")])


GENERATORS = (
    scheduler_name, origin_of_a_pair_policy, origin_of_a_cluster_policy, summary_of_a_program,
    setting_of_a_program, card_of_a_policy, card_of_an_uncut_policy,
    setting_of_a_promoted_policy, literals,
)  # fmt: skip


# A whole configuration is compiled for every text.
CASES = with_deep([each for each in GENERATORS if each is not scheduler_name], [scheduler_name])


@pytest.mark.parametrize("generate", CASES, ids=lambda each: each.__name__)
@settings(max_examples=120, deadline=None)
@given(text=hostile_texts)
def test_a_text_adds_no_code(generate, text):
    source = generate(text)
    assert _shape(source) == _shape(generate(HARMLESS))
    exec(compile(source, "generated", "exec"), {"__name__": "generated"})
    assert not was_run()


@pytest.mark.parametrize("generate", CASES, ids=lambda each: each.__name__)
@settings(max_examples=120, deadline=None)
@given(text=hostile_texts)
def test_a_text_arrives_as_it_was_or_without_the_space_around_it(generate, text):
    carried = [s for s in _texts(generate(text)) if s not in _texts(generate(HARMLESS))]
    kept = text.strip()
    assert all(kept in each for each in carried)


@settings(max_examples=200, deadline=None)
@given(text=hostile_texts)
def test_literals_and_docstrings_read_back_as_they_were(text):
    assert ast.literal_eval(literal(text)) == text
    written = ast.literal_eval("\n".join(docstring(text)))
    assert written == (text + "\n" if "\n" in text else text)
    assert "\n".join(documented([text])).isprintable()


@settings(max_examples=200, deadline=None)
@given(text=hostile_texts)
def test_a_comment_holds_nothing_but_what_prints(text):
    lines = comment(text, "    ")
    assert all(line.startswith("    # ") and line.isprintable() for line in lines)


def _enabled(*names):
    return [Enabled(name, 1, PLUGINS[name](_NO_ARGUMENTS, "v1")) for name in names]


def _shape(source):
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def _texts(source):
    found = ast.walk(ast.parse(source))
    return [n.value for n in found if isinstance(n, ast.Constant) and isinstance(n.value, str)]
