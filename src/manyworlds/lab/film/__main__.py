"""`python -m manyworlds.lab.film FOLDER`: the program that `start_drawing` starts."""

import sys

from manyworlds.lab.film.program import main

sys.exit(main(sys.argv[1]))
