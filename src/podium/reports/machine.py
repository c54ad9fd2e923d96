"""Says on which machine, and with which versions, figures are measured."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np


def machine() -> str:
    """Describes the machine in one line."""
    import llvmlite
    import numba

    return (
        f"{_processor()}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {np.__version__}"
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
