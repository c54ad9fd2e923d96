import inspect
import json
import pickle
import sys
from pathlib import Path

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
    install_line,
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
    assert error.hint == install_line("rl")
    assert error.exit_code == 3


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Has Podium installed in one way or another, and gives the folder of its clone."""

    def install(direct_url, has_locks=False):
        site, clone = tmp_path / "site", tmp_path / "a clone"
        info = site / "podium_scheduler-9.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: podium-scheduler\nVersion: 9\n"
        )
        if direct_url is not None:
            url = direct_url.get("url") or clone.as_uri()
            (info / "direct_url.json").write_text(json.dumps({**direct_url, "url": url}))
        (clone / "requirements").mkdir(parents=True)
        if has_locks:
            (clone / "requirements" / "serve.txt").touch()
        monkeypatch.syspath_prepend(site)
        monkeypatch.setattr("shutil.which", lambda _: str(Path(sys.executable).with_name("pip")))
        return clone

    return install


def test_what_was_installed_from_an_index_is_completed_from_there(installed):
    installed(None)
    assert install_line("serve") == "pip install 'podium-scheduler[serve]'"


def test_a_clone_is_completed_by_what_it_has_locked(installed, monkeypatch):
    clone = installed({"dir_info": {"editable": True}}, has_locks=True)
    locked = clone / "requirements" / "serve.txt"
    assert install_line("serve") == f"pip install --require-hashes -r '{locked}'"
    monkeypatch.chdir(clone)
    assert install_line("serve") == "pip install --require-hashes -r requirements/serve.txt"
    assert install_line("own") == "pip install -e '.[own]'"


def test_a_copy_of_a_clone_is_completed_from_it(installed, monkeypatch):
    monkeypatch.chdir(installed({"dir_info": {}}))
    assert install_line("serve") == "pip install '.[serve]'"


def test_the_pip_of_another_interpreter_is_not_the_one_to_run(installed, monkeypatch):
    installed(None)
    monkeypatch.chdir("/")
    monkeypatch.setattr("sys.executable", "/a/python")
    monkeypatch.setattr("shutil.which", lambda _: "/somewhere/else/pip")
    assert install_line("serve") == "a/python -m pip install 'podium-scheduler[serve]'"


def test_an_interpreter_without_pip_gets_packages_from_uv(installed, monkeypatch):
    installed(None)
    monkeypatch.chdir("/")
    monkeypatch.setattr("sys.executable", "/a/python")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    told = install_line("serve")
    assert told == "uv pip install --python a/python 'podium-scheduler[serve]'"


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
