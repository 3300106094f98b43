"""Randomization of ball joints, by the functions for joints."""

from __future__ import annotations

import copy

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, RewardTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import SimulationCfg

XML = """
<mujoco><worldbody><body name="trunk"><freejoint/><geom size=".1"/>
  <body name="arm" pos="0 0 .2">
    <joint name="shoulder" type="ball" damping=".1" armature=".01" stiffness="1"
           frictionloss=".02" range="0 90" limited="true"/>
    <geom size=".05" pos=".1 0 0"/>
    <body name="hand" pos=".2 0 0">
      <joint name="elbow" axis="0 1 0" damping=".3" armature=".02" stiffness="2"
             frictionloss=".03" range="-90 90"/>
      <geom size=".05" pos=".1 0 0"/>
    </body></body></body></worldbody></mujoco>
"""
DOFS = {"shoulder": [6, 7, 8], "elbow": [9]}


def make_env(engine: str = "native", xml: str = XML, **groups) -> ManagerBasedRlEnv:
    """Build three worlds with a ball joint and a hinge."""
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml))
    cfg = ManagerBasedRlEnvCfg(
        decimation=1,
        scene=SceneCfg(num_envs=3, entities={"robot": robot}),
        sim=SimulationCfg(engine=engine),  # type: ignore[arg-type]
        **groups,
    )
    return ManagerBasedRlEnv(cfg, device="cpu")


@pytest.mark.parametrize(
    ("names", "drawn"),
    [
        (None, {"shoulder", "elbow"}),
        (".*", {"shoulder", "elbow"}),
        ("shoulder", {"shoulder"}),
        (("shoulder", "elbow"), {"shoulder", "elbow"}),
        ("elbow", {"elbow"}),
    ],
)
@pytest.mark.parametrize(
    "function", [dr.joint_damping, dr.joint_armature, dr.joint_friction, dr.joint_stiffness]
)
def test_all_functions_of_joints(engine, function, names, drawn):
    """Draw one value for the three degrees of freedom of a ball joint, as the file has one."""
    params = {
        "ranges": (2.0, 3.0),
        "operation": "scale",
        "asset_cfg": SceneEntityCfg("robot", joint_names=names),
    }
    env = make_env(engine, events={"x": EventTermCfg(function, mode="startup", params=params)})
    field = function.model_fields[0]
    values = getattr(env.sim.model, field)
    factor = values / env.sim.get_default_field(field)
    for joint in DOFS:
        if field == "jnt_stiffness":
            rows = factor[:, [env.sim.mj_model.joint(f"robot/{joint}").id]]
        else:
            rows = factor[:, DOFS[joint]]
        if joint in drawn:
            assert (rows >= 2.0 - 1e-5).all() and (rows <= 3.0 + 1e-5).all()
            assert (rows == rows[:, :1]).all()
            assert len(rows[:, 0].unique()) == 3
        else:
            assert (rows == 1.0).all()
    if drawn == set(DOFS) and field == "dof_damping":
        assert (factor[:, 6] != factor[:, 9]).all()


def test_ranges_by_name():
    """Give a ball joint a range of its own."""
    env = make_env()
    dr.joint_damping(env, None, {"shoulder": (5.0, 5.0)})
    assert (env.sim.model.dof_damping[:, 6:9] == 5.0).all()
    assert (env.sim.model.dof_damping[:, 9] == env.sim.get_default_field("dof_damping")[9]).all()


def test_worlds_step_as_plain_mujoco():
    """Step each world as MuJoCo with its damping and armature."""
    env = make_env()
    dr.joint_damping(env, None, (0.1, 0.9))
    dr.joint_armature(env, None, (0.1, 0.2))
    env.sim.recompute_constants(dr.joint_armature.recompute)
    env.sim.data.qvel[:, 6:] = 1.0
    env.sim.step(20)
    for world in range(3):
        model = copy.copy(env.sim.mj_model)
        for field in ("dof_damping", "dof_armature"):
            getattr(model, field)[:] = getattr(env.sim.model, field)[world].numpy()
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)
        mujoco.mj_resetData(model, data)
        data.qvel[6:] = 1.0
        for _ in range(20):
            mujoco.mj_step(model, data)
        here = env.sim.data.qpos[world, 2:].numpy()  # without the place of the world
        np.testing.assert_allclose(here, data.qpos[2:], atol=1e-6)


@pytest.mark.parametrize("names", [None, ".*", "shoulder"])
def test_positions_of_ball_joints_are_refused(names):
    """Tell that a function cannot randomize ball joints, instead of leaving them out."""
    asset_cfg = SceneEntityCfg("robot", joint_names=names)
    params = {"ranges": (-0.1, 0.1), "asset_cfg": asset_cfg}
    term = EventTermCfg(dr.joint_default_pos, mode="startup", params=params)
    with pytest.raises(ValueError, match="ball"):
        make_env(events={"x": term})
    params["asset_cfg"] = SceneEntityCfg("robot", joint_names="elbow")
    make_env(events={"x": term})


def test_terms_that_read_no_ball_joints():
    """Refuse a name of a ball joint where only other joints are read; leave patterns for both."""
    for names in ("shoulder", ".*"):
        cfg = SceneEntityCfg("robot", joint_names=names)
        term = RewardTermCfg(func=mdp.joint_vel_l2, weight=-1.0, params={"asset_cfg": cfg})
        if names == "shoulder":
            with pytest.raises(ValueError, match="reads no ball_joint.*give joint_names"):
                make_env(rewards={"x": term})
        else:
            env = make_env(rewards={"x": term})
            assert env.reward_manager.get_term_cfg("x").params["asset_cfg"].joint_ids == slice(None)


def test_selections_of_ball_joints():
    """Resolve ball joints by their own names, by those of joints, and twice."""
    env = make_env()
    cfg = SceneEntityCfg("robot", ball_joint_names=("should.*",))
    for _ in range(2):
        cfg.resolve(env.scene)
        assert cfg.ball_joint_ids == slice(None) and cfg.ball_joint_names == ("shoulder",)
    dr.joint_damping(env, None, (7.0, 7.0), cfg)
    assert env.sim.model.dof_damping[0, 6:].tolist() == pytest.approx([7.0, 7.0, 7.0, 0.3])
    with pytest.raises(ValueError, match="'wrist' matches none"):
        SceneEntityCfg("robot", joint_names="wrist").resolve(env.scene)


def test_an_entity_with_ball_joints_alone():
    """Draw for an entity that has no other joint."""
    xml = XML.replace('name="elbow" axis="0 1 0"', 'name="elbow" type="ball"')
    env = make_env(xml=xml.replace("-90 90", "0 90"))
    dr.joint_damping(env, None, (4.0, 4.0))
    assert (env.sim.model.dof_damping[:, 6:] == 4.0).all()
    assert torch.equal(env.sim.model.dof_damping[:, :6], torch.zeros(3, 6))
