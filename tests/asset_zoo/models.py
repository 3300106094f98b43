"""Robots in a scene, and how they compare with the models that their figures are from."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.terrains import TerrainEntityCfg
from tests.robots import robot_file

ENGINES = ["native", pytest.param("warp", marks=pytest.mark.slow)]
"""Both engines; compiling kernels takes most of a minute."""


def simulate(cfg: EntityCfg, engine: str = "native", **options) -> Simulation:
    """Put a robot on a plane, in its initial state."""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    scene = Scene(SceneCfg(num_envs=1, terrain=TerrainEntityCfg(), entities={"robot": cfg}))
    sim_cfg = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.005, **options))
    sim = Simulation(1, sim_cfg, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    for field in ("qpos", "ctrl"):
        value = torch.as_tensor(getattr(sim.mj_model, f"key_{field}")[0], dtype=torch.float32)
        getattr(sim.data, field)[:] = value
    sim.forward()
    return sim


def initial(sim: Simulation) -> mujoco.MjData:
    """Return the initial state, computed by MuJoCo C."""
    data = mujoco.MjData(sim.mj_model)
    mujoco.mj_resetDataKeyframe(sim.mj_model, data, 0)
    mujoco.mj_forward(sim.mj_model, data)
    return data


def reference(file: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return the robot that figures are from, all joints at zero."""
    return at_zero(mujoco.MjModel.from_xml_path(str(robot_file(file))))


def at_zero(model: mujoco.MjModel) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a robot with its root at the origin and all joints at zero."""
    data = mujoco.MjData(model)
    if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        data.qpos[:3] = 0.0
    mujoco.mj_forward(model, data)
    return model, data


def world_inertia(model: mujoco.MjModel, data: mujoco.MjData, body: str) -> np.ndarray:
    """Inertia of a body about its center of mass, along the world's axes [kg m^2]."""
    index = model.body(body).id
    axes = data.ximat[index].reshape(3, 3)
    return axes @ np.diag(model.body_inertia[index]) @ axes.T


Pairs = Sequence[tuple[str, str]]
"""Fragments of names of the left side, and their replacements in those of the right side."""


def opposite(name: str, pairs: Pairs) -> str:
    """Name of the mirror image of a part; a part in the middle is its own."""
    for left, right in pairs:
        name = name.replace(left, "?").replace(right, left).replace("?", right)
    return name


def reflect(model: mujoco.MjModel, qpos: np.ndarray, qvel: np.ndarray, pairs: Pairs):
    """Reflect positions, and velocities or forces, in the plane y = 0."""
    new_qpos, new_qvel = qpos.copy(), qvel.copy()
    for i in range(model.njnt):
        joint = model.joint(i)
        if joint.type[0] == mujoco.mjtJoint.mjJNT_FREE:
            new_qpos[:7] *= (1, -1, 1, 1, -1, 1, -1)
            new_qvel[:6] *= (1, -1, 1, -1, 1, -1)
            continue
        other = model.joint(opposite(joint.name, pairs))
        turns = joint.type[0] == mujoco.mjtJoint.mjJNT_HINGE
        sign = 1 if bool(joint.axis[1]) == turns else -1
        new_qpos[joint.qposadr[0]] = sign * qpos[other.qposadr[0]]
        new_qvel[joint.dofadr[0]] = sign * qvel[other.dofadr[0]]
    return new_qpos, new_qvel


def check_mirror_symmetry(spec: mujoco.MjSpec, pairs: Pairs) -> None:
    """Move a robot and its mirror image: places, forces and shapes are mirror images, too."""
    model = spec.compile()
    rng = np.random.default_rng(3)
    qpos, qvel = model.qpos0.copy(), rng.normal(size=model.nv)
    for i in np.flatnonzero(model.jnt_limited):
        qpos[model.jnt_qposadr[i]] = rng.uniform(*model.jnt_range[i])
    data = [mujoco.MjData(model), mujoco.MjData(model)]
    states = (qpos, qvel), reflect(model, qpos, qvel, pairs)
    for one, state in zip(data, states, strict=True):
        one.qpos[:], one.qvel[:] = state
        mujoco.mj_forward(model, one)
    _, expected = reflect(model, qpos, data[0].qfrc_bias, pairs)
    np.testing.assert_allclose(data[1].qfrc_bias, expected, atol=1e-11)
    for kind, field in (("body", "xipos"), ("geom", "geom_xpos")):
        for i in range(getattr(model, f"n{kind}")):
            part = getattr(model, kind)(i)
            other = getattr(model, kind)(opposite(part.name, pairs)).id
            mirror_image = getattr(data[0], field)[other] * (1, -1, 1)
            np.testing.assert_allclose(getattr(data[1], field)[i], mirror_image, atol=1e-13)
            if kind == "geom":
                np.testing.assert_array_equal(model.geom_size[i], model.geom_size[other])


def joint_figures(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, np.ndarray]:
    """Place, axis and range of each hinge and slide, all joints at zero."""
    return {
        model.joint(i).name: np.concatenate(
            [data.xanchor[i] * (model.jnt_type[i] == 3), data.xaxis[i], model.jnt_range[i]]
        )
        for i in np.flatnonzero(model.jnt_limited)
    }
