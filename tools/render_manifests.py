"""Renders the chart into the templates from which `podium kube manifests` prints plain YAML.

`make manifests` runs it, with helm on the path or beside Python; `--check` only compares.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src" / "podium" / "kube" / "data"
MODES = ("scheduler", "extender")
# Values that Helm accepts and that occur nowhere else, and the fields that replace them.
FIELDS = {
    "namespace-to-be-filled-in": "${namespace}",
    "scheduler-name-to-be-filled-in": "${scheduler_name}",
    "image-to-be-filled-in:tag": "${image}",
    "kube-scheduler-to-be-filled-in:tag": "${kube_scheduler_image}",
    "worst-fit": "${policy}",
    "/etc/podium/policy/shadow-to-be-filled-in.py": "${shadow}",
    "first-fit": "${shadow}",
}
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: ${namespace}
  labels:
    # The pods need none of the rights that this withholds.
    pod-security.kubernetes.io/enforce: restricted
"""


def main(arguments: list[str]) -> None:
    """Writes every template, or says which one the chart has left behind."""
    stale = [path for path, text in templates().items() if _text_of(path) != text]
    if arguments == ["--check"]:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names} differ from the chart: run make manifests" if stale else 0)
    for path, text in templates().items():
        path.write_text(text, encoding="utf-8")


def templates() -> dict[Path, str]:
    """Renders the chart for every mode, with a policy by name and with one in a ConfigMap."""
    found = {}
    for mode, has_source in product(MODES, (False, True)):
        name = f"{mode}-policy-file.yaml" if has_source else f"{mode}.yaml"
        found[FOLDER / name] = _template(mode, has_source=has_source)
    return found


def helm() -> str:
    """Finds helm beside Python, where its package puts it, or on the path."""
    beside = shutil.which("helm", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("helm")
    if found is None:
        sys.exit("helm is not there: the development tools bring it for Linux on x86-64")
    return found


def _template(mode: str, *, has_source: bool) -> str:
    shadow = "shadow-to-be-filled-in" if has_source else "first-fit"
    values = {
        "mode": mode,
        "scheduler.name": "scheduler-name-to-be-filled-in",
        "scheduler.image.repository": "kube-scheduler-to-be-filled-in",
        "scheduler.image.tag": "tag",
        "image.repository": "image-to-be-filled-in",
        "image.tag": "tag",
        "policy.name": "worst-fit",
        "policy.shadow": f"{{{shadow}}}",
        "policy.unvalidated": "true",
        **({f"policy.sources.{shadow}": "a source"} if has_source else {}),
        "dashboard.enabled": "false",
    }
    command = [helm(), "template", "podium", str(ROOT / "charts" / "podium"), "--skip-tests"]
    command += ["--namespace", "namespace-to-be-filled-in", "--kube-version", "1.36.4"]
    command += [f"--set={key}={value}" for key, value in values.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return f"{NAMESPACE}---\n{_filled(done.stdout)}"


def _filled(rendered: str) -> str:
    """Puts fields in place of values, and leaves out what is Helm's own."""
    text = re.sub(r"^( *# Source: | *helm\.sh/| *app\.kubernetes\.io/managed-by:).*\n", "",
                  rendered.removeprefix("---\n"), flags=re.MULTILINE)  # fmt: skip
    text = re.sub(r"checksum/config: [0-9a-f]{64}", 'checksum/config: "${checksum}"', text)
    text = re.sub(
        r"^data:\n  shadow-.*\n    a source$", "${policy_files}", text, flags=re.MULTILINE
    )
    text = re.sub(r'(unvalidated: )"true"', r'\1"${unvalidated}"', text, flags=re.IGNORECASE)
    for value, field in FIELDS.items():
        text = text.replace(value, field)
    return text


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    main(sys.argv[1:])
