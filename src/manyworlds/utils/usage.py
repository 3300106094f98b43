"""The error of a wrong command line."""


class UsageError(ValueError):
    """A command line that is wrong: exit code 2."""
