"""`manyworlds list`: the tasks there are, and what they randomize."""

from __future__ import annotations

from manyworlds.cli.common import UsageError, take_modules

_USAGE = """usage: manyworlds list [KEYWORD] [--load MODULE]
       manyworlds list --randomization TASK [--load MODULE]

List the registered tasks, or what makes the worlds of one task differ."""


def main(argv: list[str]) -> int:
    """Print the names of all tasks, or of those with a keyword, or what a task randomizes."""
    from manyworlds.tasks import list_tasks

    argv = take_modules(argv)
    if any(arg in ("-h", "--help") for arg in argv):
        print(_USAGE)
        return 0
    if argv[:1] == ["--randomization"]:
        if len(argv) != 2:
            raise UsageError("Name one task: manyworlds list --randomization TASK.")
        from manyworlds.cli.randomization import randomization_table

        print(randomization_table(argv[1]))
        return 0
    if len(argv) > 1 or (argv and argv[0].startswith("-")):
        raise UsageError(
            f"`manyworlds list` takes one keyword, or --randomization TASK; got '{argv[-1]}'."
        )
    keyword = argv[0].lower() if argv else ""
    names = [name for name in list_tasks() if keyword in name.lower()]
    if not names:
        raise ValueError(f"No task contains '{argv[0]}'. Available: {', '.join(list_tasks())}.")
    print("\n".join(names))
    return 0
