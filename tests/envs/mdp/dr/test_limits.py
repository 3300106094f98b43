"""Bounds of model fields, which no draw leaves."""

from __future__ import annotations

import warnings

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg, VariantEntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.envs.mdp.dr.limits import Limits
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim.fields.model_fields import MODEL_FIELD_TABLE, FieldBounds
from tests.envs.mdp.dr.robot import make_env

ELBOW = SceneEntityCfg("robot", joint_names=("elbow",))
TIP = SceneEntityCfg("robot", body_names=("tip",))
DRIFT = dr.Operation("drift", torch.zeros_like, torch.add, uses_defaults=False)
WIDE = dr.Distribution("wide", lambda low, high, shape, device: low.expand(shape).clone())


@pytest.mark.parametrize(
    ("function", "params", "message"),
    [
        (dr.body_mass, {"ranges": (-41.0, 5.0), "operation": "abs"}, "above 0.*-41 to 5 "),
        (dr.body_mass, {"ranges": (-50.0, 5.0), "operation": "add"}, "body_mass of '.*above 0"),
        (dr.body_mass, {"ranges": (0.0, 0.0)}, "above 0.*gives 0 to 0"),
        (dr.body_mass, {"ranges": (1.0, 0.5), "distribution": "gaussian"}, "6 standard dev"),
        (dr.joint_damping, {"ranges": (-0.2, 0.1), "operation": "add"}, "'elbow' .*-0.1 to 0.2"),
        (dr.joint_armature, {"ranges": (-1.0, 1.0)}, "at least 0"),
        (dr.joint_friction, {"ranges": (-1.0, 1.0)}, "at least 0"),
        (dr.joint_stiffness, {"ranges": (-1.0, 1.0)}, "at least 0"),
        (dr.tendon_stiffness, {"ranges": (-1.0, 1.0)}, "tendon_stiffness of 'cable'"),
        (dr.tendon_damping, {"ranges": (-1.0, 1.0)}, "at least 0"),
        (dr.geom_size, {"ranges": (-0.5, 0.1), "operation": "add"}, r"geom_size\[0\]"),
        (dr.geom_size, {"ranges": (-1.5, 1.0)}, "at least 0"),
        (dr.pair_friction, {"ranges": (-0.5, 0.1)}, "pair_friction"),
        (dr.geom_rgba, {"ranges": (0.0, 1.5)}, "from 0 to 1"),
        (dr.cam_fovy, {"ranges": (20.0, 200.0)}, "above 0 to 180"),
        (dr.light_cutoff, {"ranges": (0.0, 200.0)}, "from 0 to 180"),
        (dr.mat_texrepeat, {"ranges": (-2.0, -1.0)}, "above 0"),
        (dr.joint_limits, {"ranges": (-1.0, 1.0)}, "ascending order.*up to 1 and .* from -1"),
        (dr.joint_limits, {"ranges": {0: (0.0, 2.0)}}, "ascending order"),
        (dr.tendon_range, {"ranges": (0.2, 3.0), "operation": "scale"}, "'cable' .*ascending"),
        (dr.actuator_ctrlrange, {"ranges": (-1.0, 1.0)}, "ascending order"),
        (dr.actuator_actrange, {"ranges": {1: (-1.0, 1.0)}}, "ascending order"),
        (dr.tendon_lengthspring, {"ranges": (0.1, 0.2)}, "ascending order"),
    ],
)
def test_values_out_of_bounds_are_refused_at_build(function, params, message):
    """Name the element, the range and the bounds; with `clamp`, keep to the bounds."""
    field = function.model_fields[0]
    chosen = {"asset_cfg": ELBOW} if field.startswith(("jnt_", "dof_")) else {}
    chosen = {"asset_cfg": TIP} if field == "body_mass" else chosen
    term = EventTermCfg(func=function, mode="startup", params={**params, **chosen})
    with pytest.raises(ValueError, match=f"term 'drawn' .*{message}"):
        make_env(drawn=term)
    term.params["clamp"] = True
    env = make_env(num_envs=64, drawn=term)
    bounds = MODEL_FIELD_TABLE[field].bounds
    values = getattr(env.sim.model, field).reshape(
        64, env.sim.get_default_field(field).shape[0], -1
    )
    compiled = env.sim.get_default_field(field).reshape(values.shape[1:])
    changed = (values != compiled).any(dim=(0, 2))
    values = values[:, changed]
    assert values.numel() and values.isfinite().all()
    assert (values >= bounds.low).all() and (values <= bounds.high).all()
    if bounds.above_low:
        assert (values > bounds.low).all()
    if bounds.ordered:
        assert (values[..., 0] <= values[..., 1]).all()


@pytest.mark.parametrize(
    ("function", "params"),
    [
        (dr.body_mass, {"ranges": (0.0, 5.0), "operation": "abs"}),
        (dr.body_mass, {"ranges": (1.0, 0.15), "distribution": "gaussian"}),
        (dr.body_mass, {"ranges": (1.0, 1.0)}),
        (dr.joint_damping, {"ranges": (-0.1, 0.1), "operation": "add", "asset_cfg": ELBOW}),
        (dr.joint_limits, {"ranges": (0.8, 1.2), "operation": "scale"}),
        (dr.joint_limits, {"ranges": (-0.02, 0.02), "operation": "add"}),
        (dr.tendon_range, {"ranges": {0: (0.05, 0.15)}}),
        (dr.geom_size, {"ranges": (0.8, 1.2)}),
        (dr.geom_rgba, {"ranges": (0.0, 1.0)}),
        (dr.jnt_margin, {"ranges": (-1.0, 1.0)}),
        (dr.body_gravcomp, {"ranges": (-1.0, 2.0)}),
        (dr.actuator_gear, {"ranges": (-1.0, 1.0)}),
    ],
)
def test_values_within_bounds_are_not_refused(function, params):
    """Draw whatever MuJoCo computes with; values that stay as compiled are never out of bounds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make_env(drawn=EventTermCfg(func=function, mode="reset", params=params)).reset()


def test_limits_of_joints_without_limits_may_cross():
    """Refuse no limits that are not used."""
    xml = """<mujoco><worldbody><body><joint name="wheel" limited="false" axis="0 1 0"/>
      <geom size=".1"/></body></worldbody></mujoco>"""
    term = EventTermCfg(
        func=dr.joint_limits, mode="startup", params={"ranges": (-0.1, 0.1), "operation": "add"}
    )
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml))
    cfg = ManagerBasedRlEnvCfg(
        decimation=1, scene=SceneCfg(num_envs=2, entities={"robot": robot}), events={"x": term}
    )
    ManagerBasedRlEnv(cfg, device="cpu")


@pytest.mark.parametrize(
    "params",
    [
        {"ranges": (-0.2, -0.2), "operation": DRIFT},
        {"ranges": (-0.2, -0.2), "distribution": WIDE},
    ],
)
def test_draws_of_which_nothing_is_known_are_cut(params):
    """Stop at the bound, where an operation or a distribution does not tell what it gives."""
    term = EventTermCfg(func=dr.joint_damping, mode="reset", params={"asset_cfg": ELBOW, **params})
    env = make_env(drawn=term)
    for _ in range(3):
        env.reset()
    dof = env.scene["robot"].indexing.joint_v_adr[env.scene["robot"].joint_names.index("elbow")]
    assert (env.sim.model.dof_damping[:, dof] == 0.0).all()


def test_an_own_operation_is_checked_at_the_ends_of_its_range():
    """Refuse what an operation of one's own makes of the bounds of a range."""
    minus = dr.Operation("minus", torch.zeros_like, torch.sub, uses_defaults=True)
    params = {"ranges": (0.0, 1.0), "operation": minus, "asset_cfg": ELBOW}
    with pytest.raises(ValueError, match="operation 'minus' .* gives -0.9 to 0.1"):
        make_env(drawn=EventTermCfg(func=dr.joint_damping, mode="startup", params=params))


def test_every_variant_is_checked():
    """Refuse a range that is out of bounds for a variant that no world has yet."""

    def ball(mass: float):
        xml = f"""<mujoco><worldbody><body name="ball"><freejoint/>
          <geom size=".1" mass="{mass}"/></body></worldbody></mujoco>"""
        return lambda: mujoco.MjSpec.from_string(xml)

    variants = {"heavy": ball(5.0), "light": ball(0.1)}
    ball_cfg = VariantEntityCfg(variants=variants, assignment=[0, 0])
    params = {
        "ranges": (-0.2, 0.2),
        "operation": "add",
        "asset_cfg": SceneEntityCfg("ball", body_names=("ball",)),
    }
    term = EventTermCfg(func=dr.body_mass, mode="startup", params=params)
    cfg = ManagerBasedRlEnvCfg(
        decimation=1, scene=SceneCfg(num_envs=2, entities={"ball": ball_cfg}), events={"m": term}
    )
    with pytest.raises(ValueError, match=r"-0.1 to 0.3 \(compiled: 0.1\)"):
        ManagerBasedRlEnv(cfg, device="cpu")


def test_a_lower_limit_that_moves_alone_stays_below_the_upper_one():
    """Cut the column that is written, not the other."""
    limits = Limits("x", ("a",), FieldBounds(ordered=True), torch.ones(1, 1).bool(), False)
    assert limits.cut(torch.tensor([[[2.0, 1.0]]])).tolist() == [[[1.0, 1.0]]]


def test_what_a_variant_lacks_is_not_checked():
    """Accept a range that is within bounds for each element that a world has."""

    def ball():
        xml = """<mujoco><worldbody><body name="ball"><freejoint/>
          <geom name="ball" size=".1" rgba=".5 .5 .5 .5"/></body></worldbody></mujoco>"""
        return mujoco.MjSpec.from_string(xml)

    ball_cfg = VariantEntityCfg(variants={"ball": ball, "nothing": None}, assignment=[0, 1])
    for low, message in ((-0.2, ""), (-0.6, "rgba.* gives -0.1 to 0.7")):
        params = {
            "ranges": (low, 0.2),
            "operation": "add",
            "asset_cfg": SceneEntityCfg("ball", geom_names=("ball",)),
        }
        term = EventTermCfg(func=dr.geom_rgba, mode="startup", params=params)
        cfg = ManagerBasedRlEnvCfg(
            decimation=1,
            scene=SceneCfg(num_envs=2, entities={"ball": ball_cfg}),
            events={"color": term},
        )
        if message:
            with pytest.raises(ValueError, match=message):
                ManagerBasedRlEnv(cfg, device="cpu")
        else:
            ManagerBasedRlEnv(cfg, device="cpu")
