"""`python -m manyworlds.lab.page`: the program that `LabPage` starts."""

from manyworlds.lab.page.program import main

main()
