"""The error of a wrong command line."""


class UsageError(ValueError):
    """A command line that is wrong."""

    exit_code = 2
