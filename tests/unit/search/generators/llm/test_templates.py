import pytest

from podium.errors import InputError, PodiumError, UnknownName
from podium.search.generators.generator import Exemplar, Failure, Request
from podium.search.generators.llm.prompt import OPERATORS, PromptWriter
from podium.search.generators.llm.templates import FILES, PLACEHOLDERS, Templates
from support.chat_server import POLICY

PARENT = Exemplar(3, POLICY, 94.5, "fill nodes up", "Overall: lost")


@pytest.fixture
def folder(tmp_path):
    """Writes templates of the user's own."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


def test_every_placeholder_is_used_by_a_file_of_podium_s_own():
    texts = "".join(Templates.read().texts.values())
    assert [name for name in PLACEHOLDERS if f"{{{{{name}}}}}" not in texts] == []


def test_a_file_of_the_user_s_replaces_one_and_the_others_stay(folder):
    own = Templates.read(folder(improve_md="Beat this: {{ programs }}\n\n{{operator}}"))
    prompt = PromptWriter(own).write(Request((1,), (PARENT,)))
    assert prompt.user.startswith("Beat this: ## Program 3, fitness 94.5000")
    assert prompt.user.endswith(OPERATORS[prompt.operator])
    assert prompt.system == PromptWriter().write(Request((1,), (PARENT,))).system
    repair = PromptWriter(own).write(Request((1,), (), Failure("x = {{y}}", "syntax", "bad")))
    assert "x = {{y}}" in repair.user  # values are not read as templates


def test_sentences_of_operators_are_replaced_one_by_one(folder):
    own = Templates.read(folder(operators_toml='start = "Begin."\n'))
    assert PromptWriter(own).write(Request((1,))).user.endswith("Begin.")
    assert own.operators["modify"] == OPERATORS["modify"]


def test_a_paragraph_whose_placeholders_are_all_empty_is_left_out(folder):
    text = "# Aim\n{{fitness}}\n\nAlways here.\n\n{{notes}} and {{stagnant}}\n\n{{operator}}"
    writer = PromptWriter(Templates.read(folder(start_md=text)))
    assert writer.write(Request((1,))).user == f"Always here.\n\n{OPERATORS['start']}"
    told = writer.write(Request((1,), fitness="points", notes="n")).user
    assert told.startswith("# Aim\npoints\n\nAlways here.\n\n```text\nn\n``` and \n\n")


def test_an_unknown_placeholder_is_refused_with_its_line(folder):
    with pytest.raises(UnknownName, match="placeholder") as caught:
        Templates.read(folder(system_md="Hello\n{{fitnes}}"))
    assert caught.value.where.endswith("system.md, line 2")
    assert "fitness" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [('modfy = "x"', "modfy"), ("modify = 3", "not a sentence"), ("modify", "not TOML")],
)
def test_a_file_of_operators_that_is_none_is_refused(folder, text, problem):
    with pytest.raises(PodiumError, match=problem):
        Templates.read(folder(operators_toml=text))


def test_a_folder_without_templates_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no prompt templates") as caught:
        Templates.read(tmp_path)
    assert all(name in caught.value.hint for name in FILES)
    with pytest.raises(InputError, match="no such folder"):
        Templates.read(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "meant"), [("imporve.md", "improve.md"), ("operator.toml", "operators.toml")]
)
def test_a_file_that_would_be_read_by_no_prompt_is_refused_by_its_name(folder, name, meant):
    own = folder(start_md="Begin. {{operator}}")
    (own / name).write_text("")
    with pytest.raises(UnknownName, match=f'unknown prompt template "{name}"') as caught:
        Templates.read(own)
    assert caught.value.where == str(own / name)
    assert caught.value.hint == f"did you mean {meant}"


def test_other_files_may_lie_beside_templates(folder):
    own = folder(start_md="Begin. {{operator}}")
    for name in ("README.md", ".draft.md", "improve.md.orig", "notes.txt"):
        (own / name).write_text("{{unknown}}")
    (own / "older.md").mkdir()
    assert Templates.read(own).texts["start.md"] == "Begin. {{operator}}"


def test_the_digest_knows_every_text(folder):
    usual = Templates.read().digest
    assert Templates.read().digest == usual
    assert Templates.read(folder(operators_toml='start = "Begin."\n')).digest != usual
