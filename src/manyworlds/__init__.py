"""manyworlds: train robots in many different worlds at once; walk into any one of them."""

__version__: str
"""Version of the installed distribution; `0+unknown` for sources that are not installed."""

DISTRIBUTION = "manyworlds-rl"
"""Name for pip. On PyPI, `manyworlds` is another project, with an import package of this name."""


def __getattr__(name: str) -> str:
    """Look up `__version__` on first use, since this takes longer than the import itself."""
    if name != "__version__":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(DISTRIBUTION)
    except PackageNotFoundError:
        found = "0+unknown"
    return globals().setdefault(name, found)
