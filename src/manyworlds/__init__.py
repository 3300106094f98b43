"""manyworlds: train robots in many different worlds at once; walk into any one of them."""

import os as _os

__version__ = "0.1.0"

# Physics and torch take turns on the same cores. OpenMP workers that spin long while they wait take
# them from physics, and on a busy machine make learning several times slower.
_os.environ.setdefault("GOMP_SPINCOUNT", "1000")
