"""Memory of what is done in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, sys

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

{imports}

before = peak()
try:
    {statement}
    print("nothing was refused")
except Exception as error:
    print(" ".join(str(error).split()))
print(peak() - before)
"""


def refusal_and_peak(imports: str, statement: str, *arguments: object) -> tuple[str, int]:
    """Run a statement in a process of its own.

    Args:
        imports: what the statement needs; its memory does not count.
        statement: the statement, which finds the arguments in `sys.argv[1:]`.
        *arguments: arguments of the program.

    Returns:
        Text of the error that the statement raised, and growth of the largest memory [bytes].
    """
    program = _PROGRAM.format(imports=imports, statement=statement)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text, growth = out.splitlines()[-2:]
    return text, int(growth)
