"""Every function on robots as their makers publish them: finite, and only what was asked for."""

import copy
import warnings
from collections.abc import Callable

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import BuiltinPdActuatorCfg
from manyworlds.asset_zoo.third_party import get_g1_robot_cfg, get_go1_robot_cfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.envs.mdp import dr
from manyworlds.managers import SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg
from tests.envs.mdp.dr.robot import plain_steps
from tests.envs.mdp.dr.test_fields import LOOKS, PHYSICS, SOME
from tests.envs.mdp.dr.test_inertia import EVERYTHING
from tests.robots import robot_file

OWN = {
    "pseudo_inertia": EVERYTHING,
    "pd_gains": {"kp_range": (0.5, 0.9), "kd_range": (1.1, 1.5)},
    "effort_limits": {"effort_limit_range": (0.5, 0.9)},
    "encoder_bias": {"bias_range": (0.01, 0.02)},
    "actuator_actrange": {"ranges": (0.1, 0.2)},
}
FUNCTIONS = PHYSICS | LOOKS | OWN
_PRIMITIVES = {int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")) for kind in ("SPHERE", "BOX")} | {
    int(getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")) for kind in ("CAPSULE", "CYLINDER", "ELLIPSOID")
}
FILES = {"unitree_go1": "go1.xml", "unitree_g1": "g1.xml", "i2rt_yam": "yam.xml"}


def yam_cfg() -> EntityCfg:
    """Configure the arm, whose base is fixed, with a spring and a damper on each joint."""
    path = str(robot_file("i2rt_yam/yam.xml"))
    law = BuiltinPdActuatorCfg(
        target_names_expr=(".*",), stiffness=20.0, damping=1.0, effort_limit=9.0
    )
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_file(path),
        articulation=EntityArticulationInfoCfg(actuators=(law,)),
    )


CFGS: dict[str, Callable[[], EntityCfg]] = {
    "unitree_go1": get_go1_robot_cfg,
    "unitree_g1": get_g1_robot_cfg,
    "i2rt_yam": yam_cfg,
}


@pytest.fixture(scope="module", params=CFGS)
def env(request) -> ManagerBasedRlEnv:
    """Four worlds of a robot on the floor."""
    robot_file(f"{request.param}/{FILES[request.param]}")
    scene = SceneCfg(
        num_envs=4, entities={"robot": CFGS[request.param]()}, terrain=TerrainEntityCfg()
    )
    sim = SimulationCfg(engine="native", mujoco=MujocoCfg(timestep=0.005))
    cfg = ManagerBasedRlEnvCfg(decimation=4, scene=scene, sim=sim, seed=3)
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.sim.expand_model_fields(tuple(f for n in FUNCTIONS for f in getattr(dr, n).model_fields))
    return env


def call(env: ManagerBasedRlEnv, name: str) -> None:
    """Draw in some worlds and recompute what follows; skip what the robot has nothing for."""
    params, robot = dict(FUNCTIONS[name]), env.scene["robot"]
    if name == "geom_size":
        types = env.sim.mj_model.geom_type[robot.indexing.geom_ids.numpy()]
        ids = [i for i, kind in enumerate(types.tolist()) if kind in _PRIMITIVES]
        params["asset_cfg"] = SceneEntityCfg("robot", geom_ids=ids)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "dr.body_mass")
            getattr(dr, name)(env, SOME, **params)
    except ValueError as error:
        if "to randomize" not in str(error):
            raise
        pytest.skip(str(error))
    env.sim.recompute_constants(dr.RecomputeLevel.set_const, SOME)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_writes_its_rows_and_worlds_step_on(env, name):
    """Change the fields declared in the worlds drawn, and step as plain MuJoCo C, bit for bit."""
    sim, start = env.sim, env.sim.get_state()
    env.reset()
    before = {field: getattr(sim.model, field).clone() for field in sim.expanded_fields}
    try:
        call(env, name)
        fields = getattr(dr, name).model_fields
        changed = set()
        for field, old in before.items():
            now = getattr(sim.model, field)
            assert not now.is_floating_point() or now.isfinite().all()
            assert torch.equal(now[[0, 2]], old[[0, 2]]), field
            if (now[SOME] != old[SOME]).any():
                changed.add(field)
        assert changed & set(fields) or not fields
        _step_like_plain_mujoco(env, fields)
    finally:
        sim.set_state(start)


def _step_like_plain_mujoco(env: ManagerBasedRlEnv, fields: tuple[str, ...]) -> None:
    sim, model = env.sim, env.sim.mj_model
    sim.forward()
    sim.data.qvel[:] = 0.5
    states = sim.get_state()["state"].numpy()
    sim.step(10)
    end = sim.get_state()["state"].numpy()
    assert np.isfinite(end).all()
    for world in (0, 1):
        own = copy.copy(model)
        for field in fields:
            rows = getattr(own, field).reshape(getattr(sim.model, field)[world].shape)
            now = getattr(sim.model, field)[world].numpy()
            drawn = now != rows.astype(now.dtype)
            rows[drawn] = now[drawn]
        if world in SOME:
            mujoco.mj_setConst(own, mujoco.MjData(own))
        expected = np.concatenate(plain_steps(own, states[world], 10))
        np.testing.assert_array_equal(end[world, 1 : 1 + model.nq + model.nv], expected)
