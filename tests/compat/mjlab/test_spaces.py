"""Spaces as plain data, and gymnasium's as instances of their classes."""

import gymnasium
import numpy as np
import pytest

from manyworlds.compat.mjlab.facades.utils.spaces import Box, Dict, Space, batch_space


def test_defaults():
    """Describe an unbounded number by default, and take all by position."""
    assert Box() == Box(shape=(), dtype="float32", low=-float("inf"), high=float("inf"))
    assert Box((3,), "uint8", 0, 255).high == 255 and Dict().spaces == {}
    assert isinstance(Box(), Space) and not isinstance(Box(), Dict)


def test_batches_have_one_more_axis():
    """Add the batch in front, in dictionaries to all members, and change no space in place."""
    image, joints = Box((4, 6, 3), "uint8", 0.0, 255.0), Box((2,), low=(-1.0, -2.0))
    space = Dict(spaces={"camera": image, "state": Dict(spaces={"joints": joints})})
    batch = batch_space(space, 7)
    assert batch.spaces["camera"] == Box((7, 4, 6, 3), "uint8", 0.0, 255.0)
    assert batch.spaces["state"].spaces["joints"] == Box((7, 2), low=(-1.0, -2.0))
    assert image.shape == (4, 6, 3) and space.spaces["state"].spaces["joints"] is joints
    assert batch_space(Space((2,), "int64"), 3) == Space((3, 2), "int64")


def test_spaces_of_environments_are_instances(env):
    """Recognize gymnasium's spaces, and batch them as gymnasium does."""
    single = env.single_observation_space
    assert isinstance(single, Dict) and isinstance(single.spaces["actor"], Box)
    assert not isinstance(single, Box) and single["actor"].dtype == "float32"
    batch = batch_space(gymnasium.spaces.Box(-1.0, 1.0, (2,)), 4)
    assert isinstance(batch, gymnasium.spaces.Box) and batch.shape == (4, 2)
    np.testing.assert_array_equal(batch.low, -1.0)


def test_what_is_no_space_is_refused():
    """Refuse other objects."""
    with pytest.raises(TypeError, match=r"\(3,\) is no space"):
        batch_space((3,), 2)
