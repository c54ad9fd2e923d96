import os
from pathlib import Path

import pytest

from podium.errors import SettingsError
from podium.settings import keys, load_settings
from podium.settings.folder import any_value, inside, names, no_value
from podium.settings.load import inspect_settings, wishes
from podium.settings.trust import Trusted

DATA = {
    "traces.folder", "simulate.*", "display.*", "compile.tier", "online.*", "search.workers",
    "search.temperature", "search.max_tokens", "search.reasoning_effort",
    "search.model_timeout_s", "search.model_calls", "serve.log_level", "serve.log_requests",
    "extender.policy", "extender.shadow", "extender.twin", "extender.twin_lifetime_s",
    "extender.ties", "extender.decisive_points", "extender.gang_points", "extender.assume_s",
    "extender.window_pods", "extender.max_state_age_s", "extender.max_answer_s",
    "extender.max_hold_s", "extender.recent_pods", "extender.topology",
}  # fmt: skip
"""All that a folder may set; whatever is added to Podium needs the user's word."""

RULES = {
    "simulate.policy": names, "extender.policy": names, "extender.shadow": names,
    "simulate.trace": inside, "simulate.cluster": inside, "traces.folder": inside,
}  # fmt: skip
"""Those of which it may set some values alone."""

WRITTEN = {bool: "true", int: "5000", float: "0.5", str: '"../x"', Path: '"x"'}
"""A value of each kind, as TOML has it."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def user(tmp_path):
    return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}


def refusal_of(text, folder, user, **environ):
    (folder / "podium.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        load_settings(environ={**user, **environ}, folder=folder)
    return caught.value


@pytest.mark.parametrize("key", keys().values(), ids=lambda key: key.path)
def test_each_setting_says_whether_a_folder_may_make_it(key):
    is_data = key.path in DATA or f"{key.section}.*" in DATA
    assert key.about.from_folder is RULES.get(key.path, any_value if is_data else no_value)


@pytest.mark.parametrize(
    "key", [key for key in keys().values() if key.about.from_folder is no_value],
    ids=lambda key: key.path,
)  # fmt: skip
def test_a_folder_sets_nothing_beyond_data_until_it_is_trusted(key, folder, user):
    text = f"[{key.section}]\n{key.name} = {WRITTEN[key.kind]}\n"
    problem = refusal_of(text, folder, user)
    assert problem.message.startswith(f"{key.path} is not taken from podium.toml: ")
    assert problem.where == f"podium.toml, line 2, [{key.section}] {key.name}"
    assert "podium trust" in problem.hint
    assert key.env_names[0] in problem.hint
    document, refused = wishes(folder)
    assert [each.key for each in refused] == [key]
    Trusted.of(user).add(document)
    assert load_settings(environ=user, folder=folder).origins[key.path] == "podium.toml, line 2"


def test_the_promise_names_every_setting_that_needs_the_users_word():
    promise = Path(__file__).parents[3].joinpath("SECURITY.md").read_text()
    needing = [key.path for key in keys().values() if key.about.from_folder is not any_value]
    assert [path for path in needing if f"`{path}`" not in promise] == []


@pytest.mark.parametrize(
    ("value", "is_data"),
    [("fgd", True), ("first-fit", True), ("evil.py", False), ("run:3f2a", False), ("a/b", False),
     ("a.json#b", False), ("fgd, evil.npz", False)],
)  # fmt: skip
def test_a_name_of_a_policy_is_data_and_a_file_is_a_program(value, is_data, folder):
    assert names(value, folder) == is_data


@pytest.mark.parametrize(
    ("value", "is_data"),
    [("openb", True), ("pods.csv", True), ("a/../pods.csv", True), ("../pods.csv", False),
     ("/etc/passwd", False), ("~/pods.csv", False), ("link.csv", False), ("loop", False),
     ("pods.csv,../b.csv", False), ("a,b", False), ("a\0b", False)],
)  # fmt: skip
def test_files_are_data_where_they_lie_in_the_folder(value, is_data, folder):
    (folder / "link.csv").symlink_to("/etc/passwd")
    (folder / "a,b").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to("loop")
    assert inside(value, folder) == is_data


def test_all_that_is_refused_is_told_together(folder, user):
    problem = refusal_of('[search]\nmodels = "m"\nusd = 5\n', folder, user)
    assert problem.message.startswith("2 settings are not taken from podium.toml")
    assert problem.where.count("\n") == 1


def test_what_outranks_the_file_needs_no_trust(folder, user):
    (folder / "podium.toml").write_text('[store]\nurl = "a.db"\n[search]\nusd = 5\n')
    settings = load_settings(
        {"store.url": "b.db"}, environ={**user, "PODIUM_SEARCH_USD": "1"}, folder=folder
    )
    assert (settings.store.url, settings.search.usd) == ("b.db", 1.0)


def test_a_changed_file_and_one_elsewhere_are_asked_about_anew(folder, user, tmp_path):
    (folder / "podium.toml").write_text('[store]\nurl = "a.db"\n')
    trusted, (document, _) = Trusted.of(user), wishes(folder)
    trusted.add(document)
    assert load_settings(environ=user, folder=folder).store.url == "a.db"
    assert list(trusted) == [str(folder / "podium.toml")]
    other = tmp_path / "other"
    other.mkdir()
    refusal_of('[store]\nurl = "a.db"\n', other, user)
    refusal_of('[store]\nurl = "b.db"\n', folder, user)
    trusted.add(document)
    (folder / "podium.toml").write_text('[store]\nurl = "a.db"\n')
    assert trusted.revoke(folder / "podium.toml")
    assert not trusted.revoke(folder / "podium.toml")
    refusal_of('[store]\nurl = "a.db"\n', folder, user)


def test_trust_that_others_could_have_written_does_not_count(folder, user):
    (folder / "podium.toml").write_text('[store]\nurl = "a.db"\n')
    trusted = Trusted.of(user)
    trusted.add(wishes(folder)[0])
    (entry,) = trusted.folder.iterdir()
    entry.chmod(0o666)
    refusal_of('[store]\nurl = "a.db"\n', folder, user)


def test_the_users_own_file_is_not_asked_about(user, tmp_path):
    own = tmp_path / "config" / "podium"
    own.mkdir(parents=True)
    (own / "podium.toml").write_text('[store]\nurl = "a.db"\n')
    assert load_settings(environ=user, folder=own).store.url == "a.db"


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_file_that_all_can_write_is_not_the_users_own(which, user, tmp_path):
    own = tmp_path / "config" / "podium"
    own.mkdir(parents=True)
    file = own / "podium.toml"
    file.write_text('[simulate]\nseed = 4\n[store]\nurl = "a.db"\n')
    (file if which == "file" else own).chmod(0o777)
    settings, refused = inspect_settings(environ=user, folder=tmp_path)
    assert (settings.simulate.seed, settings.origins["store.url"]) == (4, "default")
    assert "can be written to by others" in refused["store.url"].doubt.reason


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_file_of_somebody_else_is_never_trusted(which, folder, user):
    path = folder / "podium.toml"
    path.write_text('[store]\nurl = "a.db"\n')
    Trusted.of(user).add(wishes(folder)[0])
    os.chown(path if which == "file" else folder, 65534, 65534)
    problem = refusal_of('[store]\nurl = "a.db"\n', folder, user)
    assert "belongs to user 65534" in problem.message
    assert "podium trust" not in problem.hint
