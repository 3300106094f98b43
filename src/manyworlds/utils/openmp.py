"""Settings of OpenMP, which torch uses on the CPU."""

from __future__ import annotations

import os


def limit_openmp_spinning() -> None:
    """Limit busy-waiting of OpenMP's idle threads; call this before torch is imported.

    Physics and torch use the same cores in turn. OpenMP threads that busy-wait for long take the
    cores from physics, and on a busy machine make learning several times slower. The environment
    variable GOMP_SPINCOUNT takes precedence.
    """
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
