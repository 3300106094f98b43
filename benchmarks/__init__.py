"""Named workloads, and the ledger of their measurements."""

import os
from pathlib import Path

from manyworlds.utils.openmp import limit_openmp_spinning

limit_openmp_spinning()  # as the command line does
_ROBOTS = Path(__file__).resolve().parents[2] / "shared" / "robots"
if _ROBOTS.is_dir():
    os.environ.setdefault("MANYWORLDS_ROBOTS", str(_ROBOTS))
