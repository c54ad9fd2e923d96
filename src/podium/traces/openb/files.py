"""Knows the original files of OpenB: their names, sizes, checksums and what they hold."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

CITATION = (
    "Q. Weng, L. Yang, Y. Yu, W. Wang, X. Tang, G. Yang, L. Zhang: Beware of Fragmentation: "
    "Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent. USENIX ATC 2023. "
    "https://www.usenix.org/conference/atc23/presentation/weng"
)
"""What to cite when the traces are used; their authors allow research and study."""

GPU_NODES = "gpu_node"
"""The node list of all published experiments."""

_NODE_PREFIX = "openb_node_list_"
_POD_PREFIX = "openb_pod_list_"
_NODE_SUMMARIES = {
    "gpu_node": "the 1,213 GPU nodes of the published experiments",
    "all_node": "the GPU nodes and 310 nodes without GPUs",
    "16_node": "16 of the GPU nodes, 64 GPUs",
}
_POD_SUMMARIES = (
    (r"default", "the original pods"),
    (r"cpu(\d+)", "CPU-only pods are {0:.1f} % of all"),
    (r"gpushare(\d+)", "pods with a share of a GPU make up {0:.0f} % of GPU demand"),
    (r"multigpu(\d+)", "pods with several GPUs make up {0:.0f} % of GPU demand; no times"),
    (r"gpuspec(\d+)", "about {0:.0f} % of GPU pods name the GPU models they accept"),
)


@dataclass(frozen=True, slots=True)
class OpenbFile:
    """Describes one original file."""

    file_name: str
    rows: int
    size_bytes: int
    sha256: str

    @property
    def trace(self) -> str:
        """Gives the part after `openb:` that names the file."""
        return self.file_name.removeprefix(_NODE_PREFIX).removeprefix(_POD_PREFIX)[: -len(".csv")]

    @property
    def is_nodes(self) -> bool:
        """Tells whether the file is a node list."""
        return self.file_name.startswith(_NODE_PREFIX)


@dataclass(frozen=True, slots=True)
class OpenbIndex:
    """Lists the original files and where they come from."""

    repository: str
    commit: str
    folder: str
    files: tuple[OpenbFile, ...]


def openb_index() -> OpenbIndex:
    """Reads the list of original files."""
    text = resources.files("podium.traces").joinpath("data/openb_files.json").read_text("utf-8")
    parts = json.loads(text)
    files = tuple(OpenbFile(*row) for row in parts["files"])
    return OpenbIndex(parts["repository"], parts["commit"], parts["folder"], files)


def find_file(folder: Path | None, trace: str) -> Path | None:
    """Finds the node or pod list of a trace name in a folder, plain or compressed."""
    if folder is None or not re.fullmatch(r"\w+", trace):
        return None
    candidates = [
        folder / f"{prefix}{trace}{suffix}"
        for prefix in (_NODE_PREFIX, _POD_PREFIX)
        for suffix in (".csv", ".csv.gz")
    ]
    return next((path for path in candidates if path.is_file()), None)


def found_traces(folder: Path | None) -> list[str]:
    """Lists the trace names of all OpenB files in a folder."""
    if folder is None or not folder.is_dir():
        return []
    pattern = re.compile(rf"(?:{_NODE_PREFIX}|{_POD_PREFIX})(\w+)\.csv(?:\.gz)?")
    matches = (pattern.fullmatch(path.name) for path in folder.iterdir())
    return sorted({match.group(1) for match in matches if match})


def summary(trace: str) -> str:
    """Says in a few words what a trace holds."""
    if trace in _NODE_SUMMARIES:
        return _NODE_SUMMARIES[trace]
    for pattern, text in _POD_SUMMARIES:
        match = re.fullmatch(pattern, trace)
        if match:
            digits = match.group(1) if match.groups() else "0"
            percent = float(digits) / 10 if trace.startswith("cpu") else float(digits)
            return text.format(percent)
    return "a file of your own"
