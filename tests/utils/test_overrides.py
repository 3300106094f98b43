"""Detection of overridden methods."""

from manyworlds.utils.overrides import overrides


class _Base:
    def move(self) -> None:
        """Move."""

    def stop(self) -> None:
        """Stop."""


class _Same(_Base):
    pass


class _Own(_Same):
    def stop(self) -> None:
        """Stop at once."""


class _Below(_Own):
    pass


def test_methods_of_subclasses_are_found():
    """Compare with a base class, however far below it the method is."""
    assert not overrides(_Base(), _Base, "move", "stop")
    assert not overrides(_Same(), _Base, "move", "stop")
    assert overrides(_Own(), _Base, "move", "stop") and not overrides(_Own(), _Base, "move")
    assert overrides(_Below(), _Base, "stop") and not overrides(_Below(), _Own, "stop")
