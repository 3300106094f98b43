"""manyworlds: train robots in many different worlds at once; walk into any one of them."""

__version__: str
"""Version of the installed distribution; `0+unknown` for sources that are not installed."""


def __getattr__(name: str) -> str:
    """Look up `__version__` on first use, since this takes longer than the import itself."""
    if name != "__version__":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from manyworlds.utils.extras import own_version

    return globals().setdefault(name, own_version())
