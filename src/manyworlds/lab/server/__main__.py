"""`python -m manyworlds.lab.server`: the program that `HubProcess` starts."""

from manyworlds.lab.server.program import main

main()
