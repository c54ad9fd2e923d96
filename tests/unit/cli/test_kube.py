"""Snapshots and recordings are begun only with what they can use, and say what they lack."""

import pytest

from podium.cli.main import app


@pytest.mark.parametrize("period", ["nonsense", "exponential:2h", "-5", "0"])
def test_a_recording_for_no_time_is_not_begun(runner, tmp_path, period):
    target = tmp_path / "cluster.jsonl"
    done = runner.invoke(app, ["kube", "record", str(target), f"--for={period}"])
    assert done.exit_code == 2
    assert f'"{period}" is not a time' in done.stderr
    assert "give 90m, 2h or seconds" in done.stderr
    assert not target.exists()
