"""manyworlds: train robots in many different worlds at once; walk into any one of them."""

import os as _os

__version__ = "0.1.0"

# Physics and torch take turns on the same cores. OpenMP workers that spin while they wait would
# take them from physics, and on a busy machine make learning many times slower.
_os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
