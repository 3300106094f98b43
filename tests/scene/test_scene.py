"""Scenes: attaching, options, origins."""

import mujoco
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.scene import Scene, SceneCfg

BALL = """<mujoco>{option}<worldbody>
  <body name="b"><freejoint/><geom size=".1"/></body>
</worldbody></mujoco>"""


def ball(option: str = "") -> EntityCfg:
    """Configure a ball whose file sets an option."""
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(BALL.format(option=option)))


def test_entities_are_prefixed_and_compiled_together():
    """Attach each entity under its name; no body becomes a shortcut."""
    model = Scene(SceneCfg(entities={"a": ball(), "b": ball()}), "cpu").compile()
    assert [model.body(i).name for i in range(model.nbody)] == ["world", "a/b", "b/b"]
    assert model.body_simple[1:].tolist() == [0, 0]


def test_spec_fn_edits_the_whole():
    """Run the scene's own edit after all entities are attached."""

    def edit(spec: mujoco.MjSpec) -> None:
        assert spec.body("a/b") is not None
        spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 1))

    model = Scene(SceneCfg(entities={"a": ball()}, spec_fn=edit), "cpu").compile()
    assert model.geom("floor").id >= 0


def test_options_of_entities_are_named_and_ignored():
    """Warn with the option's name, and keep the scene's value."""
    cfg = SceneCfg(entities={"a": ball('<option timestep="0.1"/>')})
    with pytest.warns(UserWarning, match="Entity 'a' sets <option> timestep"):
        model = Scene(cfg, "cpu").compile()
    assert model.opt.timestep == 0.002


def test_fixed_bases_stand_where_their_initial_state_says():
    """Place an entity without a free joint through its frame."""
    xml = '<mujoco><worldbody><body name="post"><geom size=".1"/></body></worldbody></mujoco>'
    cfg = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(pos=(1.0, 2.0, 3.0)),
    )
    model = Scene(SceneCfg(entities={"post": cfg}), "cpu").compile()
    assert model.body("post/post").pos.tolist() == [1.0, 2.0, 3.0]


def test_worlds_share_one_place():
    """Keep what floats beside what is fixed: no world is moved away from its geometry."""
    assert not Scene(SceneCfg(num_envs=9), "cpu").env_origins.any()


def test_the_config_is_copied():
    """Leave the user's config alone."""
    cfg = SceneCfg(entities={"a": ball()})
    scene = Scene(cfg, "cpu")
    scene.cfg.num_envs = 5
    assert cfg.num_envs == 1


def test_mistakes_are_named():
    """Refuse no worlds and unknown entities."""
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        Scene(SceneCfg(num_envs=0), "cpu")
    with pytest.raises(KeyError, match=r"Scene element 'x' not found. Available: \['a'\]"):
        Scene(SceneCfg(entities={"a": ball()}), "cpu")["x"]
