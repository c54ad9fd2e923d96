"""The image is built from what is locked, and runs without root on a file system that is read-only.

No container engine is needed: the steps of the Dockerfile run in a folder of their own.
"""

import http.client
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from podium.kube.local.daemon import free_ports, running
from support.helm import ROOT, of_kind, rendered

INSIDE = re.compile(r"(?<![\w/.-])/(opt/podium|var/cache|var/lib|source|tmp)\b")
# What a container engine does: no capabilities, none to be gained, another user, nothing writable.
CONFINED = (
    "mount --bind {0}/var {0}/var && mount --bind {0}/tmp {0}/tmp && mount -o remount,ro,bind /"
)
AS_USER = "setpriv --reuid {0} --regid {1} --clear-groups --no-new-privs --inh-caps=-all"
START_S = 300.0


def instructions():
    """Lists the instructions of the Dockerfile with their arguments, joined to one line each."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    lines = kept.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line.strip()]


def stages():
    """Gives the instructions of both stages."""
    found = instructions()
    (_, second) = [place for place, (name, _) in enumerate(found) if name == "FROM"]
    return found[:second], found[second:]


def last(name):
    return [given for each, given in stages()[1] if each == name][-1]


def test_the_base_image_has_an_exact_version():
    (base,) = [given for name, given in instructions() if name == "ARG"]
    assert re.fullmatch(r"PYTHON=\S+/python:3\.11\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    assert all(given.startswith("${PYTHON}") for name, given in instructions() if name == "FROM")


def test_every_package_is_locked_with_its_hash_or_comes_from_the_source():
    installs = [given for name, given in instructions() if name == "RUN" and "pip install" in given]
    assert len(installs) == 2
    assert "--require-hashes --only-binary :all: --no-deps" in installs[0]
    assert "--no-index --no-deps --no-build-isolation" in installs[1]
    named = re.findall(r"-r (\S+)", installs[0])
    assert {Path(each).stem for each in named} == {"base", "serve", "kube", "postgres"}
    assert all((ROOT / each).is_file() for each in named)


def test_whatever_is_copied_is_there_and_not_ignored():
    copied = [shlex.split(given)[:-1] for name, given in stages()[0] if name == "COPY"]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for source in [each for group in copied for each in group]:
        assert (ROOT / source).exists()
        assert f"!{source}" in ignored


def test_image_and_chart_agree_on_user_folders_and_port(tmp_path):
    deployment = of_kind(rendered({}, tmp_path), "Deployment")["spec"]["template"]["spec"]
    context = deployment["securityContext"]
    assert last("USER") == f"{context['runAsUser']}:{context['runAsGroup']}"
    (podium,) = [each for each in deployment["containers"] if each["name"] == "podium"]
    assert int(last("EXPOSE")) == podium["ports"][0]["containerPort"]
    mounted = {each["mountPath"] for each in podium["volumeMounts"]}
    (made,) = [given for name, given in stages()[1] if name == "RUN"]
    assert set(re.findall(r"/var/\S+", made)) <= mounted
    assert last("ENTRYPOINT") == '["podium"]'


@pytest.fixture(scope="module")
def image():
    """Runs the steps of the Dockerfile with a folder in place of the root."""
    root = Path(tempfile.mkdtemp(prefix="podium-image-"))
    root.chmod(0o755)
    for name in ("tmp", "var/cache", "var/lib", "source", "opt"):
        (root / name).mkdir(parents=True)
    try:
        build(root)
        yield root
    finally:
        shutil.rmtree(root)


def inside(root, text):
    return INSIDE.sub(rf"{root}/\1", text)


def build(root):
    for name, given in (*stages()[0], *(each for each in stages()[1] if each[0] == "RUN")):
        if name == "COPY":
            *sources, _ = shlex.split(given)
            subprocess.run(["cp", "-r", *sources, root / "source"], cwd=ROOT, check=True)
        elif name == "RUN":
            step(root, inside(root, given))


def step(root, command):
    done = subprocess.run(
        ["bash", "-ec", command], cwd=root / "source", capture_output=True, text=True, check=False,
    )  # fmt: skip
    if re.search(r"NewConnectionError|Could not find a version|No matching distr", done.stderr):
        pytest.skip("the packages cannot be downloaded here")
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def environment(root):
    """Reads the variables that the image sets."""
    pairs = [each.split("=", 1) for each in shlex.split(last("ENV"))]
    path = {"PATH": os.environ["PATH"]}
    return {
        name: inside(root, value).replace("$PATH", path["PATH"]) for name, value in pairs
    } | {"LANG": "C.UTF-8"}  # fmt: skip


def confined(root, *arguments):
    """Writes a command that runs Podium as a cluster runs the image."""
    user, group = last("USER").split(":")
    variables = [f"{name}={value}" for name, value in environment(root).items()]
    return [
        "env", "-i", f"--chdir={root}/tmp", *variables,
        "unshare", "--mount", "bash", "-ec", CONFINED.format(root) + ' && exec "$@"', "bash",
        *AS_USER.format(user, group).split(), root / "opt/podium/bin/podium", *arguments,
    ]  # fmt: skip


@pytest.mark.deep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_steps_of_the_dockerfile_give_a_service_that_needs_no_root(image):
    (port,) = free_ports(1)
    user = int(last("USER").split(":")[0])
    log = image / "tmp" / "log"
    with running(confined(image, "serve", "--port", str(port)), log) as daemon:
        answer = asked(daemon, port)
    assert answer == '{"status":"ready","store":"ok"}'
    assert (image / "var/lib/podium/podium.db").stat().st_uid == user
    assert "Read-only" not in log.read_text()


@pytest.mark.deep
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_policies_are_compiled_where_only_the_cache_is_writable(image):
    command = confined(image, "policies", "check", "first-fit")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any((image / "var/cache/podium/compiled").iterdir())


def asked(daemon, port):
    """Waits until the service is ready."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and daemon.process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            reply = connection.getresponse()
            if reply.status == http.HTTPStatus.OK:
                return reply.read().decode()
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise AssertionError(daemon.log.read_text())
