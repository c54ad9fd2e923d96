"""Files that want all time and memory get an error instead, and soon."""

import gzip
import os
import subprocess

import pytest

from support.binary import clean_environment, podium_after

MEMORY_BYTES = 1 << 30
POOR = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES},) * 2)"
TIME_S = 300  # far more than is needed, on a busy machine too
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def aliases(key):
    """Lets a kilobyte stand for 9 ** 12 texts."""
    lines = ["a0: &a0 [x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    return "metadata:\n" + "".join(f"  {line}\n" for line in lines) + f"{key}: *a11\n"


def merges():
    lines = ["m0: &m0 {k: v}"]
    lines += [f"m{i}: &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}" for i in range(1, 30)]
    return "metadata:\n" + "".join(f"  {line}\n" for line in lines)


def bomb(block, mebibytes=300):
    piece = gzip.compress(block * ((1 << 20) // len(block)))
    return piece * mebibytes  # members of a gzip file may follow each other


ORDERED = ["simulate", "--cluster", "openb:16", "--protocol", "inflation", "--orders"]
REPLAYED = ["search", "run", "--generator", "llm", "--model", "m", "--replay"]
FILES = {
    "laughs.yaml": (HEAD + aliases("profiles"), ["policies", "show"]),
    "merges.yaml": (HEAD + merges(), ["policies", "show"]),
    "deep.yaml": (HEAD + "profiles: " + "[" * 20_000, ["policies", "show"]),
    "digits.yaml": (HEAD + f"percentageOfNodesToScore: {'9' * 5000}", ["policies", "show"]),
    "deep.json": ('{"kind":' + "[" * 99_999 + "]" * 99_999 + "}", ["policies", "show"]),
    "digits.json": (f'{{"kind": {"9" * 5000}}}', ["policies", "show"]),
    "laughing-node.yaml": ("kind: Node\n" + aliases("status"), ["traces", "info"]),
    "deep-node.json": ('{"kind": "Node", "a":' + "[" * 99_999, ["traces", "info"]),
    "one-line.csv.gz": (bomb(b"a"), ["traces", "info"]),
    "one-line.yaml.gz": (bomb(b"a"), ["traces", "info"]),
    "one-line.json.gz": (bomb(b" "), ["traces", "info"]),
    "many-lines.yaml.gz": (bomb(b"- x\n"), ["traces", "info"]),
    "one-row.csv.gz": (bomb(b'"\n",'), ["traces", "info"]),
    "deep.py": ("x = " + "+".join(["1"] * 9000), ["policies", "show"]),
    "large.py": ("#" * (2 << 20), ["search", "evaluate"]),
    "orders.jsonl.gz": (bomb(b"1"), ORDERED),
    "orders.jsonl": ("[" * 99_999, ORDERED),
    "cassette.jsonl": ('{"cassette": "podium", "version": 1}\n' + "[" * 99_999 + "\n", REPLAYED),
}


def run_poor(arguments, folder):
    """Runs the real podium with little memory."""
    return subprocess.run(
        [*podium_after(POOR), *arguments],
        cwd=folder,
        env=clean_environment(folder),
        capture_output=True,
        text=True,
        timeout=TIME_S,
    )


def assert_refused(done):
    lines = done.stderr.splitlines()
    assert done.returncode == 2, done.stderr
    assert [line[:6] for line in lines] == ["error:", "  at: ", "  try:"], done.stderr
    assert len(done.stderr) < 1000
    assert done.stdout == ""


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_refused_in_three_lines(tmp_path, name):
    content, verb = FILES[name]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert_refused(run_poor([*verb, str(path)], tmp_path))


@pytest.mark.parametrize(
    "content",
    [f"[simulate]\nseed = {'9' * 5000}", "x = " + "[" * 9999, f"[simulate]\nseed = 0x{'f' * 9999}",
     "x = [\n" + "1,\n" * 15_000, "#" * (1 << 20)],
    ids=["digits", "deep", "hexadecimal", "long", "large"],
)  # fmt: skip
def test_hostile_settings_are_refused(tmp_path, content):
    (tmp_path / "podium.toml").write_text(content)
    assert_refused(run_poor(["config"], tmp_path))


@pytest.mark.parametrize("device", ["/dev/zero", "pipe", "folder"])
def test_what_is_no_file_is_refused(tmp_path, device):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    name = {"/dev/zero": "zero.csv"}.get(device, f"{device}.csv")
    done = run_poor(["traces", "info", name], tmp_path)
    assert done.returncode == 2
    assert "internal" not in done.stderr
    if device == "/dev/zero":
        assert_refused(run_poor(["search", "evaluate", device], tmp_path))
