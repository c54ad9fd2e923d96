import subprocess
import sys
from pathlib import Path

import pytest

from support.binary import clean_environment
from support.service import served

pytestmark = pytest.mark.deep

ST = Path(sys.executable).with_name("st")
TOKEN = "0123456789abcdef0123456789abcdef"

# That lists belong together, and have room, is beyond what a schema can say.
CONFIGURATION = """\
[[operations]]
include-path = "/v1/assign"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.parametrize("token", ["", TOKEN], ids=["open", "with a token"])
def test_generated_requests_find_nothing_that_differs_from_the_description(tmp_path, token):
    pytest.importorskip("schemathesis")
    (tmp_path / "schemathesis.toml").write_text(CONFIGURATION)
    environ = {"PODIUM_SERVE_TOKEN": token} if token else {}
    header = ["--header", f"Authorization: Bearer {token}"] if token else []
    with served(tmp_path, **environ) as process:
        done = subprocess.run(
            [
                str(ST), "run", f"{process.url}/openapi.json", *header, "--no-color",
                "--phases", "coverage,fuzzing", "--max-examples", "30", "--continue-on-failure",
                "--generation-deterministic",
            ],
            cwd=tmp_path,
            env=clean_environment(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
        assert process.get("/readyz").status == 200
        assert process.end() == 0
    assert not [log for log in process.logs if log.get("status", 0) >= 500]
