"""`python -m manyworlds.lab.pictures`: the program that `CameraProcess` starts."""

from manyworlds.lab.pictures.program import main

main()
