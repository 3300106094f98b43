"""`python -m manyworlds.lab.pictures.film FOLDER`: the program that `start_drawing` starts."""

import sys

from manyworlds.lab.pictures.film.program import main

sys.exit(main(sys.argv[1]))
