"""`python -m manyworlds.lab.network`: the program that `HubProcess` starts."""

from manyworlds.lab.network.program import main

main()
