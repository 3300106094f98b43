"""SceneEntityCfg: names to ids, ids to names, or both in agreement."""

import pytest

from manyworlds.managers import SceneEntityCfg


def test_names_become_ids(env):
    """Resolve names to local ids, and rewrite names in id order."""
    cfg = SceneEntityCfg("cartpole", body_names=("pole", "cart"))
    cfg.resolve(env.scene)
    assert (cfg.body_ids, cfg.body_names) == ([2, 3], ("cart", "pole"))
    assert cfg.joint_ids == slice(None) and cfg.joint_names is None


def test_preserved_order_is_that_of_the_patterns(env):
    """Order ids by pattern on request."""
    cfg = SceneEntityCfg("cartpole", body_names=("pole", "cart"), preserve_order=True)
    cfg.resolve(env.scene)
    assert (cfg.body_ids, cfg.body_names) == ([3, 2], ("pole", "cart"))


def test_all_names_in_model_order_become_a_slice(env):
    """Collapse a complete selection, so that indexing is a view."""
    cfg = SceneEntityCfg("cartpole", joint_names=".*")
    cfg.resolve(env.scene)
    assert cfg.joint_ids == slice(None) and cfg.joint_names == ("slider", "hinge_1")


def test_ids_become_names(env):
    """Look up the names of ids."""
    cfg = SceneEntityCfg("cartpole", joint_ids=[1])
    cfg.resolve(env.scene)
    assert cfg.joint_names == ("hinge_1",)


def test_names_and_ids_must_agree(env):
    """Accept both if they say the same, refuse them otherwise."""
    SceneEntityCfg("cartpole", joint_names="hinge_1", joint_ids=[1]).resolve(env.scene)
    with pytest.raises(ValueError, match=r"joint_names='hinge_1'.*\[1\].*joint_ids=\[0\]"):
        SceneEntityCfg("cartpole", joint_names="hinge_1", joint_ids=[0]).resolve(env.scene)


def test_mistakes_are_named(env):
    """Name an unknown entity, a pattern without match, and an id out of range."""
    with pytest.raises(KeyError, match=r"'robot' not found. Available: \['cartpole'\]"):
        SceneEntityCfg("robot").resolve(env.scene)
    with pytest.raises(ValueError, match="'wheel' matches none of"):
        SceneEntityCfg("cartpole", body_names="wheel").resolve(env.scene)
    with pytest.raises(ValueError, match=r"joint_ids=\[2\], but 2 is not in \[0, 2\)"):
        SceneEntityCfg("cartpole", joint_ids=[2]).resolve(env.scene)


def test_indices_are_as_cheap_as_they_can_be(env):
    """Index contiguous ids by a slice and others by one tensor, also when the ids are changed."""
    cfg = SceneEntityCfg("cartpole", body_ids=[3, 1, 2])
    assert cfg.index("body").tolist() == [3, 1, 2]  # before it is resolved, too
    cfg.resolve(env.scene)
    assert cfg.index("body").tolist() == [3, 1, 2]
    assert cfg.index("body") is cfg.index("body") and cfg.index("joint") == slice(None)
    cfg.body_ids = [1, 2]
    assert cfg.index("body") == slice(1, 3)
