import pytest

from podium.errors import SettingsError
from podium.settings import load_settings, shown


@pytest.mark.parametrize(
    ("name", "text", "path", "value"),
    [
        ("SCHEDULER_HOST", "0.0.0.0", "serve.host", "0.0.0.0"),
        ("SCHEDULER_PORT", "9090", "serve.port", 9090),
        ("SCHEDULER_LOG_LEVEL", "WARNING", "serve.log_level", "warning"),
        ("SCHEDULER_CHECKPOINT_INTERVAL", "60", "serve.checkpoint_interval_s", 60.0),
        ("SCHEDULER_RETENTION_OBSERVATIONS", "50", "serve.retention_observations", 50),
        ("SCHEDULER_SQLITE_PATH", "/data/scheduler.db", "store.url", "/data/scheduler.db"),
        ("SCHEDULER_EXPLORATION_CAP", "0.1", "online.exploration_cap", 0.1),
    ],
)
def test_the_names_of_the_agent_before_work(tmp_path, name, text, path, value):
    settings = load_settings(environ={name: text}, folder=tmp_path)
    section, key = path.split(".")
    assert getattr(getattr(settings, section), key) == value
    assert settings.origins[path] == f"environment {name}"


def test_the_address_of_a_kubernetes_service_is_no_port(tmp_path):
    links = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "PODIUM_SERVE_PORT": "tcp://10.0.0.7:8080",
        "SCHEDULER_PORT": "tcp://10.0.0.8:8080",
    }
    assert load_settings(environ=links, folder=tmp_path).serve.port == 8080


def test_outside_of_kubernetes_such_an_address_is_a_mistake(tmp_path):
    with pytest.raises(SettingsError, match="not a whole number"):
        load_settings(environ={"PODIUM_SERVE_PORT": "tcp://10.0.0.7:80"}, folder=tmp_path)


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_a_port_that_does_not_exist_is_refused(tmp_path, port):
    with pytest.raises(SettingsError, match=r"too (small|large)"):
        load_settings(environ={"PODIUM_SERVE_PORT": port}, folder=tmp_path)


def test_a_token_is_never_shown(tmp_path):
    settings = load_settings(environ={"PODIUM_SERVE_TOKEN": "s3cret" * 5}, folder=tmp_path)
    assert "s3cret" not in str([row.value for row in shown(settings)])
