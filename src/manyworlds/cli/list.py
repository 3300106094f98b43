"""`manyworlds list`: the tasks there are."""

from __future__ import annotations

from manyworlds.cli.common import take_modules


def main(argv: list[str]) -> int:
    """Print the names of all tasks, or of those that contain a keyword."""
    from manyworlds.tasks import list_tasks

    argv = take_modules(argv)
    if any(arg in ("-h", "--help") for arg in argv):
        print("usage: manyworlds list [KEYWORD] [--load MODULE]\n\nList the registered tasks.")
        return 0
    keyword = argv[0].lower() if argv else ""
    names = [name for name in list_tasks() if keyword in name.lower()]
    if not names:
        raise ValueError(f"No task contains '{argv[0]}'. Available: {', '.join(list_tasks())}.")
    print("\n".join(names))
    return 0
