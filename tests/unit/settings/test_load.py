from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.errors import SettingsError
from podium.settings import default_settings, keys, load_settings

SEEDS = st.none() | st.integers(min_value=0, max_value=10**6)


@pytest.fixture
def home(tmp_path):
    """Makes a user folder and a project folder, and loads settings from them."""
    return Home(tmp_path)


class Home:
    def __init__(self, folder):
        self.project = folder / "project"
        self.user = folder / "config" / "podium"
        self.project.mkdir(parents=True)
        self.user.mkdir(parents=True)

    def load(self, flags=None, **environ):
        variables = {
            "XDG_CONFIG_HOME": str(self.user.parent),
            "XDG_STATE_HOME": str(self.user.parent.parent / "state"),
            **environ,
        }
        return load_settings(flags, environ=variables, folder=self.project)

    def problem(self, flags=None, **environ):
        with pytest.raises(SettingsError) as caught:
            self.load(flags, **environ)
        return caught.value


@given(flag=SEEDS, variable=SEEDS, project=SEEDS, user=SEEDS)
def test_the_nearest_source_wins_and_is_named(tmp_path_factory, flag, variable, project, user):
    home = Home(tmp_path_factory.mktemp("home"))
    if project is not None:
        (home.project / "podium.toml").write_text(f"[simulate]\nseed = {project}\n")
    if user is not None:
        (home.user / "podium.toml").write_text(f"\n[simulate]\nseed = {user}\n")
    environ = {} if variable is None else {"PODIUM_SIMULATE_SEED": str(variable)}
    settings = home.load({"simulate.seed": flag}, **environ)
    ranked = [
        (flag, "flag --seed"),
        (variable, "environment PODIUM_SIMULATE_SEED"),
        (project, "podium.toml, line 2"),
        (user, f"{home.user / 'podium.toml'}, line 3"),
        (0, "default"),
    ]
    value, origin = next((value, origin) for value, origin in ranked if value is not None)
    assert settings.simulate.seed == value
    assert settings.origins["simulate.seed"] == origin


def test_sections_merge_key_by_key(home):
    (home.user / "podium.toml").write_text("[simulate]\nseed = 1\nload = 2\n")
    (home.project / "podium.toml").write_text("[simulate]\nseed = 3\n")
    simulate = home.load(PODIUM_SIMULATE_RATIO="1.5").simulate
    assert (simulate.seed, simulate.load, simulate.ratio) == (3, 2.0, 1.5)


def test_without_any_source_everything_is_default(home):
    settings = home.load()
    assert settings == default_settings()
    assert set(settings.origins) == set(keys())
    assert set(settings.origins.values()) == {"default"}


@pytest.mark.parametrize("name", ["PODIUM_TRACES", "PODIUM_TRACES_FOLDER"])
def test_the_traces_folder_has_a_short_and_a_full_name(home, name):
    settings = home.load(**{name: "data"})
    assert settings.traces.folder == Path("data")
    assert settings.origins["traces.folder"] == f"environment {name}"


def test_two_names_for_one_setting_must_agree(home):
    assert home.load(PODIUM_TRACES="a", PODIUM_TRACES_FOLDER="a").traces.folder == Path("a")
    problem = home.problem(PODIUM_TRACES="a", PODIUM_TRACES_FOLDER="b")
    assert problem.message == "PODIUM_TRACES_FOLDER and PODIUM_TRACES differ"


def test_a_name_that_others_gave_a_setting_yields_to_its_own(home):
    settings = home.load(SCHEDULER_SQLITE_PATH="old.db", PODIUM_STORE_URL="new.db")
    assert settings.store.url == "new.db"
    assert settings.origins["store.url"] == "environment PODIUM_STORE_URL"


def test_an_empty_variable_is_no_value(home):
    assert home.load(PODIUM_SIMULATE_SEED="").origins["simulate.seed"] == "default"


def test_caches_lie_in_the_users_cache_folder(home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert home.load().compile.cache == Path("/somewhere/podium/compiled")
    assert home.load(PODIUM_COMPILE_CACHE="/else").compile.cache == Path("/else")


def test_the_customary_wish_for_no_colour_is_a_setting_of_its_own_origin(home):
    settings = home.load(NO_COLOR="1")
    assert settings.display.color == "never"
    assert settings.origins["display.color"] == "environment NO_COLOR"
    assert home.load(NO_COLOR="1", PODIUM_DISPLAY_COLOR="always").display.color == "always"


def test_a_misspelt_key_is_reported_with_its_line_and_a_suggestion(home):
    (home.project / "podium.toml").write_text("[simulate]\nseed = 1\npolcy = 'fgd'\n")
    problem = home.problem()
    assert problem.message == 'unknown setting "polcy"'
    assert problem.where == "podium.toml, line 3, [simulate]"
    assert problem.hint == "did you mean policy"


def test_a_misspelt_section_is_reported_with_its_line_and_a_suggestion(home):
    (home.project / "podium.toml").write_text("\n[simulat]\nseed = 1\n")
    problem = home.problem()
    assert problem.message == 'unknown section "simulat"'
    assert (problem.where, problem.hint) == ("podium.toml, line 2", "did you mean simulate")


def test_a_key_outside_its_section_is_told_where_it_belongs(home):
    (home.project / "podium.toml").write_text("seed = 1\n")
    assert home.problem().hint == "move it below [simulate]"


def test_a_section_that_is_no_table_is_reported(home):
    (home.project / "podium.toml").write_text("simulate = 1\n")
    assert home.problem().message == '"simulate" is outside any section'


def test_a_misspelt_variable_is_reported_with_a_suggestion(home):
    problem = home.problem(PODIUM_SIMULTE_SEED="1")
    assert problem.message == 'unknown environment variable "PODIUM_SIMULTE_SEED"'
    assert problem.hint.startswith("did you mean PODIUM_SIMULATE_SEED")


def test_a_wrong_type_in_a_file_is_reported_with_line_and_key(home):
    (home.project / "podium.toml").write_text('[simulate]\nseed = "3"\n')
    problem = home.problem()
    assert problem.message == '"3" is not a whole number'
    assert problem.where == "podium.toml, line 2, [simulate] seed"
    assert problem.hint == "give a whole number of at least 0 (random seed)"


def test_a_wrong_value_is_reported_even_where_a_nearer_source_hides_it(home):
    (home.user / "podium.toml").write_text("[simulate]\nload = 0\n")
    assert "0 is too small" in home.problem({"simulate.load": 2.0}).message


def test_a_wrong_flag_is_named(home):
    problem = home.problem({"simulate.hold_limit": 0})
    assert problem.where == "flag --hold-limit, [simulate] hold_limit"


def test_all_problems_are_shown_together(home):
    (home.user / "podium.toml").write_text("[nothing]\n")
    (home.project / "podium.toml").write_text("[simulate]\nseed = -1\nprotocol = 'replai'\n")
    problem = home.problem({"simulate.ratio": -1.0}, PODIUM_DISPLAY_PROGRESS="maybe")
    places = problem.where.splitlines()
    assert problem.message == "5 settings cannot be used"
    assert [place.split(":")[0] for place in places] == [
        f"{home.user / 'podium.toml'}, line 1",
        "podium.toml, line 2, [simulate] seed",
        "podium.toml, line 3, [simulate] protocol",
        "environment PODIUM_DISPLAY_PROGRESS, [display] progress",
        "flag --ratio, [simulate] ratio",
    ]
    assert "did you mean replay" in places[2]


def test_a_broken_file_does_not_hide_the_other_problems(home):
    (home.project / "podium.toml").write_text("[simulate\n")
    assert home.problem(PODIUM_SIMULATE_SEED="x").message == "2 settings cannot be used"


def test_names_that_kubernetes_gives_a_pod_for_its_services_are_no_settings(home):
    links = {
        "PODIUM_SERVICE_HOST": "10.0.0.1",
        "PODIUM_SERVICE_PORT_HTTP": "80",
        "PODIUM_PORT": "tcp://10.0.0.1:80",
        "PODIUM_UI_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    home.load(KUBERNETES_SERVICE_HOST="10.0.0.2", **links)
    assert home.problem(**links).message == "4 settings cannot be used"


def test_the_wish_for_tracebacks_is_no_unknown_variable(home):
    assert home.load(PODIUM_DEBUG="1").origins == home.load().origins


def test_a_flag_of_no_setting_is_a_mistake_of_the_verb(home):
    with pytest.raises(KeyError):
        home.load({"simulate.sed": 1})
