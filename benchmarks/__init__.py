"""Named workloads and one ledger of what they measured."""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line has it, before torch loads
