"""`python -m manyworlds.lab.cameras`: the program that `CameraProcess` starts."""

from manyworlds.lab.cameras.program import main

main()
