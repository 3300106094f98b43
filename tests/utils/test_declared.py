"""Attributes that a class declares."""

import pytest

from manyworlds.utils.declared import declared


class Thing:
    """Assigns one attribute at once and another later."""

    size: int = declared()
    place: str = declared("before it is put somewhere.")

    def __init__(self) -> None:
        self.size = 3


class Fixed(Thing):
    """Computes what its base declares."""

    @property
    def place(self) -> str:
        """Place that does not change."""
        return "here"


def test_a_declared_attribute_belongs_to_the_instance():
    """List the attribute on the class; let instances assign and delete their own values."""
    one, other = Thing(), Thing()
    other.size = 4
    assert {"size", "place"} <= set(dir(Thing)) and vars(one) == {"size": 3}
    assert (one.size, other.size) == (3, 4)
    del one.size
    with pytest.raises(AttributeError, match="'Thing' object has no attribute 'size' before it is"):
        _ = one.size


def test_an_early_read_says_when_there_is_a_value():
    """Raise an AttributeError, so that `hasattr` works, unless a subclass computes the value."""
    thing = Thing()
    assert not hasattr(thing, "place")
    with pytest.raises(AttributeError, match="no attribute 'place' before it is put somewhere."):
        _ = thing.place
    thing.place = "there"
    assert thing.place == "there" and Fixed().place == "here"
