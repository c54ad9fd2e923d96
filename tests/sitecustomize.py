"""Keeps what only the development tools bring out of the processes that tests start.

Python imports this module by its name where this folder is on PYTHONPATH. Numba loads SciPy and
coverage.py wherever they are installed, at a quarter of the time that `podium` takes to start; who
installs Podium has neither.
"""

import sys

for name in ("coverage", "scipy"):
    sys.modules.setdefault(name, None)
