import inspect
import pickle

import pytest

from podium import errors
from podium.errors import (
    InputError,
    MissingError,
    MissingExtra,
    PodiumError,
    PolicyError,
    SettingsError,
    UnknownName,
    UsageError,
    advice_on,
    close_names,
)

ALL = [
    cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, PodiumError)
]


@pytest.mark.parametrize("cls", ALL)
def test_every_error_stands_in_the_tree_that_the_module_draws(cls):
    assert cls.__name__ in inspect.getdoc(errors)


@pytest.mark.parametrize("cls", ALL)
def test_every_error_survives_the_way_between_processes(cls):
    error = cls("it failed", where="a file", hint="mend it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert (copy.message, copy.where, copy.hint) == ("it failed", "a file", "mend it")


@pytest.mark.parametrize(
    ("cls", "code"),
    [(UsageError, 2), (SettingsError, 2), (InputError, 2), (PolicyError, 2), (MissingError, 3)],
)
def test_an_error_carries_the_exit_code_of_its_branch(cls, code):
    assert cls("it failed").exit_code == code


def test_a_missing_extra_gives_the_exact_install_line():
    error = MissingExtra.named("rl", "training")
    assert error.message == "training needs the extra 'rl'"
    assert error.hint == "pip install 'podium-scheduler[rl]'"
    assert error.exit_code == 3


def test_an_error_names_itself_for_machines():
    assert InputError("it failed").code == "InputError"


def test_an_error_reads_as_place_and_message():
    assert str(PodiumError("it failed", where="a file")) == "a file: it failed"
    assert str(PodiumError("it failed")) == "it failed"


def test_an_unknown_name_suggests_the_closest_known_ones():
    error = UnknownName.among("policy", "best-fitt", ["worst-fit", "best-fit", "fgd"])
    assert error.message == 'unknown policy "best-fitt"'
    assert error.hint.startswith("did you mean best-fit")
    assert "fgd" not in error.hint


def test_an_unknown_name_like_no_other_lists_them_all():
    assert UnknownName.among("policy", "zzz", ["fgd", "best-fit"]).hint == "known: best-fit, fgd"


def test_thousands_of_known_names_are_not_listed():
    hint = UnknownName.among("pod", "zzz", [f"pod-{i:04}" for i in range(8152)]).hint
    assert hint.startswith("known: pod-0000, pod-0001, ")
    assert hint.endswith("pod-0019 and 8,132 more")


@pytest.mark.parametrize(
    ("line", "column", "where"),
    [
        (0, "", "pods.csv"),
        (3, "", "pods.csv, line 3"),
        (3, "cpu_milli", "pods.csv, line 3, cpu_milli"),
        (0, "cpu_milli", "pods.csv, cpu_milli"),
    ],
)
def test_an_input_error_names_file_line_and_column_as_far_as_known(line, column, where):
    assert InputError.at("pods.csv", "bad", line=line, column=column).where == where


POLICIES = ["best-fit", "fgd", "first-fit", "gpu-packing", "kube-default", "online", "worst-fit"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FGD", ["fgd"]), ("fdg", ["fgd"]), ("fgdd", ["fgd"]), ("bestfit", ["best-fit"]),
        ("Best_Fit", ["best-fit"]), ("bst-fit", ["best-fit"]), ("kube", ["kube-default"]),
        ("gpu", ["gpu-packing"]), ("nope", []), ("x", []), ("", []), ("my_policy", []),
        ("fit", []), ("g", []),
    ],
)  # fmt: skip
def test_only_what_may_be_meant_is_suggested(name, meant):
    assert close_names(name, POLICIES) == meant


def test_two_that_are_as_close_are_both_suggested():
    assert close_names("run-c", ["run-a", "run-b", "walk"]) == ["run-b", "run-a"]


def test_where_nothing_is_close_the_names_are_listed():
    assert advice_on("nope", ["b", "a"]) == "known: a, b"
