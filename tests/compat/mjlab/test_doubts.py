"""Input that mjlab takes and that is probably a mistake: refused here, and warned of there."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.compat import mjlab
from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
)
from manyworlds.scene import Scene, SceneCfg
from manyworlds.spec.config import CollisionCfg, GeomCfg, MaterialCfg
from manyworlds.utils.files import update_assets
from tests.envs.mdp.robot import make_env, robot_cfg

ROBOT = SceneEntityCfg("robot")
BODY = SceneEntityCfg("robot", body_names=("tip",))


def _event(func: Any, mode: Any = "startup", **params: Any) -> ManagerBasedRlEnv:
    return make_env(2, events={"event": EventTermCfg(func=func, mode=mode, params=params)})


def _draw(func: Any, ranges: Any, **params: Any) -> ManagerBasedRlEnv:
    return _event(func, asset_cfg=ROBOT, ranges=ranges, **params)


def _timed(bounds: tuple[float, float]) -> ManagerBasedRlEnv:
    event = EventTermCfg(func=lambda env, ids: None, mode="interval", interval_range_s=bounds)
    return make_env(2, events={"event": event})


def _observed(**options: Any) -> ManagerBasedRlEnv:
    term = ObservationTermCfg(func=mdp.joint_pos_rel, **options)
    return make_env(2, observations={"actor": ObservationGroupCfg({"term": term})})


def _acting(**options: Any) -> ManagerBasedRlEnv:
    action = mdp.JointPositionActionCfg(
        entity_name="robot", actuator_names=("shoulder",), **options
    )
    return make_env(2, actions={"term": action})


def _rewarded(func: Any, weight: float = 1.0, **params: Any) -> ManagerBasedRlEnv:
    return make_env(2, rewards={"term": RewardTermCfg(func=func, weight=weight, params=params)})


def _robot(**options: Any) -> ManagerBasedRlEnv:
    cfg = robot_cfg()
    for name, value in options.items():
        setattr(cfg, name, value)
    return make_env(2, scene=SceneCfg(num_envs=2, entities={"robot": cfg}))


def _pose(pose_range: dict[str, tuple[float, float]]) -> ManagerBasedRlEnv:
    return _event(mdp.reset_root_state_uniform, "reset", pose_range=pose_range, velocity_range={})


DOUBTS: dict[str, tuple[Callable[[], object], str]] = {
    "a range of a startup draw": (
        lambda: _draw(dr.joint_damping, (0.5, 0.1)),
        "lower bound 0.5 above its upper bound 0.1",
    ),
    "a range by name": (
        lambda: _draw(dr.joint_damping, {".*": (0.5, 0.1)}),
        "lower bound 0.5 above",
    ),
    "a range by axis": (
        lambda: _draw(dr.geom_friction, {0: (0.9, 0.5)}),
        "lower bound 0.9 above",
    ),
    "a logarithmic range": (
        lambda: _draw(dr.joint_armature, (0.5, 0.1), distribution="log_uniform"),
        "lower bound 0.5 above",
    ),
    "a range that scales": (
        lambda: _draw(dr.body_mass, (2.0, 0.5), operation="scale"),
        "lower bound 2 above",
    ),
    "a range of gains": (
        lambda: _event(dr.pd_gains, asset_cfg=ROBOT, kp_range=(1.1, 0.9), kd_range=(0.9, 1.1)),
        "lower bound 1.1 above",
    ),
    "a range of a bias": (
        lambda: _event(dr.encoder_bias, asset_cfg=ROBOT, bias_range=(0.1, -0.1)),
        "lower bound 0.1 above",
    ),
    "a range of inertia": (
        lambda: _event(dr.pseudo_inertia, asset_cfg=BODY, alpha_range=(0.2, -0.2)),
        "lower bound 0.2 above",
    ),
    "an interval": (lambda: _timed((2.0, 1.0)), r"interval_range_s=\(2.0, 1.0\)"),
    "a clip of an observation": (lambda: _observed(clip=(1.0, -1.0)), "clip is"),
    "a clip of an action": (
        lambda: _acting(clip={".*": (1.0, -1.0)}),
        "between which there is nothing",
    ),
    "bounds beyond those of a field": (
        lambda: _draw(dr.joint_damping, (-0.1, 0.1)),
        "must be at least 0, but operation",
    ),
    "limits that may cross": (
        lambda: _draw(dr.joint_limits, (-0.5, 0.5), operation="abs"),
        "gives lower values of up to",
    ),
    "a place of a body that is state": (
        lambda: _event(
            dr.body_pos,
            asset_cfg=SceneEntityCfg("robot", body_names=("base",)),
            ranges=(0.0, 0.1),
        ),
        "dr.body_pos has no effect",
    ),
    "a pattern of joint positions": (
        lambda: _robot(init_state=EntityCfg.InitialStateCfg(joint_pos={"knee": 1.0})),
        "'knee' matches none of",
    ),
    "a pattern of joint velocities": (
        lambda: _robot(init_state=EntityCfg.InitialStateCfg(joint_vel={"knee": 1.0})),
        "'knee' matches none of",
    ),
    "a pattern of collisions": (
        lambda: _robot(collisions=(CollisionCfg(("tip", "foot.*")),)),
        "'foot.*' matches none of",
    ),
    "a pattern of friction": (
        lambda: _robot(collisions=(CollisionCfg(("tip",), friction={"foot": (1.0,)}),)),
        "'foot' matches none of",
    ),
    "a pattern of geoms": (
        lambda: _robot(geoms=(GeomCfg(("tip", "foot"), group=3),)),
        "'foot' matches none of",
    ),
    "a pattern of a material": (
        lambda: _robot(
            materials=(MaterialCfg("red", (1, 0, 0, 1), geom_names_expr=("tip", "foot")),)
        ),
        "'foot' matches none of",
    ),
    "a pattern of postures": (
        lambda: _rewarded(mdp.posture, std={".*": 0.5, "knee": 0.1}, asset_cfg=ROBOT),
        "'knee' matches none of",
    ),
    "an offset beside the default": (
        lambda: _acting(offset=0.2, use_default_offset=True),
        "has offset=0.2, but use_default_offset",
    ),
    "a parameter of a term that counts for nothing": (
        lambda: _rewarded(mdp.flat_orientation_l2, weight=0.0, typo=1),
        "has no parameter 'typo'",
    ),
    "a selection that is not read": (
        lambda: _rewarded(mdp.joint_vel_l2, asset_cfg=BODY),
        "joint_vel_l2 reads no body of it",
    ),
    "an axis of a pose": (lambda: _pose({"x": (0.0, 0.1), "theta": (0.0, 1.0)}), "keys"),
}


def _use(make: Callable[[], object]) -> None:
    env: Any = make()
    env.reset()
    env.step(torch.zeros(env.num_envs, env.action_manager.total_action_dim))
    assert torch.isfinite(env.sim.data.qpos).all()


@pytest.mark.parametrize("name", DOUBTS)
def test_what_is_doubtful_is_refused(name):
    """Say what is wrong in an error."""
    make, sentence = DOUBTS[name]
    with pytest.raises(ValueError, match=sentence):
        _use(make)


@pytest.mark.parametrize("name", DOUBTS)
def test_what_is_doubtful_runs_under_the_alias(name, alias):
    """Say the same in a warning, and run."""
    make, sentence = DOUBTS[name]
    with pytest.warns(UserWarning, match=sentence):
        _use(make)


def test_ranges_from_high_to_low_are_drawn_from(alias):
    """Draw between the bounds, as from the range in order."""
    with pytest.warns(UserWarning, match="lower bound"):
        env = _draw(dr.joint_damping, (0.5, 0.1))
    drawn = env.sim.model.dof_damping[:, 6:]
    assert (drawn >= 0.1).all() and (drawn <= 0.5).all() and drawn.std() > 0
    with pytest.warns(UserWarning, match="lower bound"):
        env = _draw(dr.joint_armature, (0.5, 0.1), distribution="log_uniform")
    drawn = env.sim.model.dof_armature[:, 6:]
    assert (drawn >= 0.0999).all() and (drawn <= 0.5001).all() and drawn.std() > 0
    with pytest.warns(UserWarning, match="interval_range_s"):
        env = _timed((0.4, 0.2))
    left = env.event_manager._timers()["event"]
    assert (left >= 0.2).all() and (left <= 0.4).all()


REFERRING = {
    "an exclusion": '<contact><exclude body1="base" body2="terrain"/></contact>',
    "a pair": '<contact><pair geom1="tip" geom2="floor"/></contact>',
    "an equality": '<equality><weld body1="base" body2="terrain"/></equality>',
    "a tendon": '<tendon><fixed name="t"><joint joint="knee" coef="1"/></fixed></tendon>',
    "an actuator": '<actuator><motor name="m" joint="knee"/></actuator>',
    "a sensor": '<sensor><gyro name="g" site="nose"/></sensor>',
    "a tuple": (
        '<custom><tuple name="u"><element objtype="body" objname="terrain"/></tuple></custom>'
    ),
}
"""Elements that refer to what the model of the entity does not have."""


def _scene(elements: str, variants: bool) -> mujoco.MjModel:
    xml = f"""
    <mujoco>
      <worldbody><body name="base"><freejoint/><geom name="base" size=".1"/>
        <body name="tip"><joint name="hinge"/><geom name="tip" size=".1"/></body>
      </body></worldbody>
      {elements}
    </mujoco>
    """
    if variants:
        from manyworlds.entity import VariantEntityCfg

        cfg: EntityCfg = VariantEntityCfg(
            variants={name: lambda: mujoco.MjSpec.from_string(xml) for name in "ab"}
        )
    else:
        cfg = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml))
    return Scene(SceneCfg(num_envs=2, entities={"robot": cfg}), "cpu").compile()


@pytest.mark.parametrize("kind", REFERRING)
def test_elements_that_refer_to_others_are_left_out(kind):
    """Refuse a model that names what it has not, and leave the element out under the alias."""
    with pytest.raises(ValueError, match="not found|missing|copies|unrecognized|unknown"):
        _scene(REFERRING[kind], variants=False)
    mjlab.install()
    try:
        with pytest.warns(UserWarning):
            model = _scene(REFERRING[kind], variants=False)
    finally:
        mjlab.uninstall()
    assert model.nbody == 3
    counts = (model.nexclude, model.npair, model.neq, model.ntendon, model.nu, model.nsensor)
    assert not any(counts) and model.ntuple == 0


def test_variants_leave_elements_out_too(alias):
    """Build variants of which each names a body that is not there."""
    with pytest.warns(UserWarning, match="body 'terrain' not found"):
        model = _scene(REFERRING["an exclusion"], variants=True)
    assert model.nexclude == 0


def test_a_missing_folder_of_assets_has_none(tmp_path, alias):
    """Warn of a folder that is not there; an empty one is no mistake."""
    assets: dict[str, bytes] = {}
    with pytest.warns(UserWarning, match="There is no folder"):
        update_assets(assets, tmp_path / "missing", "meshes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        update_assets(assets, tmp_path, "meshes")
    assert not assets
