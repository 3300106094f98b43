"""Settings of OpenMP, which torch uses on the CPU."""

from __future__ import annotations

import os


def limit_openmp_spinning() -> None:
    """Let OpenMP's idle threads sleep soon; call this before torch loads.

    Physics and torch take turns on the same cores. Threads of OpenMP that spin for long while they
    wait take the cores from physics, and on a busy machine make learning several times slower. The
    environment variable GOMP_SPINCOUNT takes precedence.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
