"""`python -m manyworlds`: the command line, as `torchrun -m manyworlds` starts it."""

import sys

from manyworlds.cli.main import main

sys.exit(main())
