"""Roots of entities: the body of the free joint, wherever it is in the file."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import EventTermCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from manyworlds.utils.viewer_config import ViewerConfig
from manyworlds.viewer.camera import tracked_body_id
from tests.robots import robot_file

ROBOTS = {
    "go1": ("unitree_go1/go1.xml", "trunk"),
    "g1": ("unitree_g1/g1.xml", "pelvis"),
    "ant": ("gymnasium/envs/mujoco/assets/ant.xml", "torso"),
    "humanoid": ("dm_control/suite/humanoid.xml", "torso"),
}
Engine = Literal["native", "warp"]
WORLDS = 3


def _file(robot: str) -> str:
    name, _ = ROBOTS[robot]
    package, _, inside = name.partition("/")
    if package.startswith("unitree"):
        return str(robot_file(name))
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return str(Path(spec.submodule_search_locations[0], inside))


def on_ground(robot: str, ground: str = '<geom type="plane" size="5 5 .1"/>') -> EntityCfg:
    """Configure a robot that comes after its ground, a body of the same file."""
    path = _file(robot)
    xml = (
        f'<mujoco><worldbody><body name="ground" pos="0 0 -.5">{ground}</body></worldbody></mujoco>'
    )

    def spec() -> mujoco.MjSpec:
        parent = mujoco.MjSpec.from_string(xml)
        child = mujoco.MjSpec.from_file(path)
        for geom in child.worldbody.geoms:  # the floor that the file has itself
            child.delete(geom)
        for key in list(child.keys):
            child.delete(key)
        child.option = parent.option
        parent.attach(child, prefix="", frame=parent.worldbody.add_frame())
        return parent

    init = EntityCfg.InitialStateCfg(pos=(0.5, -0.25, 1.5), rot=(0.8, 0.0, 0.6, 0.0))
    return EntityCfg(spec_fn=spec, init_state=init)


def build(cfg: EntityCfg, engine: Engine = "native") -> tuple[Scene, Simulation]:
    """Build worlds that each hold one robot."""
    scene = Scene(SceneCfg(num_envs=WORLDS, entities={"robot": cfg}), "cpu")
    sim_cfg = SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.002))
    sim = Simulation(WORLDS, sim_cfg, spec=scene.spec, device="cpu")
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene, sim


def _plain(sim: Simulation, world: int) -> mujoco.MjData:
    data = mujoco.MjData(sim.mj_model)
    data.qpos[:], data.qvel[:] = sim.data.qpos[world].numpy(), sim.data.qvel[world].numpy()
    mujoco.mj_forward(sim.mj_model, data)
    return data


@pytest.mark.parametrize("engine", ["native", "warp"])
@pytest.mark.parametrize("robot", ROBOTS)
def test_the_root_is_the_body_of_the_free_joint(robot: str, engine: Engine):
    """Write and read its state, as MuJoCo has it, and leave the body before it where it is."""
    if engine == "warp" and robot != "go1":
        pytest.skip("one robot is enough there")
    scene, sim = build(on_ground(robot), engine)
    entity, root = scene["robot"], ROBOTS[robot][1]
    assert entity.body_names[0] == "ground" and entity.root_body.name == f"robot/{root}"
    assert not entity.is_fixed_base and not entity.is_mocap
    body = sim.mj_model.body(f"robot/{root}").id
    assert entity.indexing.root_body_id == body
    assert entity.body_names[entity.indexing.root_index] == root
    data = entity.data
    assert data.default_root_state[0, :7].tolist() == pytest.approx(
        [0.5, -0.25, 1.5, 0.8, 0, 0.6, 0]
    )
    state = data.default_root_state + torch.rand(WORLDS, 13) * torch.tensor(
        [1.0] * 3 + [0.0] * 4 + [1.0] * 6
    )
    entity.write_root_state_to_sim(state)
    sim.forward()
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(data.root_link_pose_w, state[:, :7], **close)
    torch.testing.assert_close(data.root_link_vel_w, state[:, 7:], **close)
    assert data.body_link_pos_w[:, 0].tolist() == [[0.0, 0.0, -0.5]] * WORLDS
    for world in range(WORLDS):
        plain = _plain(sim, world)
        np.testing.assert_allclose(data.root_com_pos_w[world], plain.xipos[body], **close)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(sim.mj_model, plain, mujoco.mjtObj.mjOBJ_BODY, body, velocity, 0)
        np.testing.assert_allclose(data.root_com_ang_vel_w[world], velocity[:3], **close)
        np.testing.assert_allclose(data.root_com_lin_vel_w[world], velocity[3:], **close)
        gravity = plain.xmat[body].reshape(3, 3).T @ [0.0, 0.0, -1.0]
        np.testing.assert_allclose(data.projected_gravity_b[world], gravity, **close)
    entity.write_root_com_velocity_to_sim(state[:, 7:])
    sim.forward()
    torch.testing.assert_close(data.root_com_vel_w, state[:, 7:], **close)
    entity.write_external_wrench_to_sim(torch.ones(WORLDS, 3), torch.zeros(WORLDS, 3), body_ids=[0])
    assert sim.data.xfrc_applied[:, sim.mj_model.body("robot/ground").id, 0].tolist() == [1.0] * 3


@pytest.mark.parametrize("robot", ROBOTS)
def test_it_steps_as_plain_mujoco(robot: str):
    """Fall onto the ground bit for bit as `mj_step` has it, and as a robot whose root is first."""
    scene, sim = build(on_ground(robot))
    scene["robot"].write_root_state_to_sim(scene["robot"].data.default_root_state)
    plain = _plain(sim, 1)
    for _ in range(50):
        sim.step()
        mujoco.mj_step(sim.mj_model, plain)
    assert sim.data.qpos[1].tolist() == plain.qpos.astype(np.float32).tolist()


def test_environments_reset_the_root_and_share_the_ground():
    """Reset it within its bounds; worlds share one origin where the ground is finite."""
    events = {
        "root": EventTermCfg(
            func=mdp.reset_root_state_uniform,
            mode="reset",
            params={"pose_range": {"x": (0.1, 0.2)}, "velocity_range": {}},
        )
    }
    cfg = on_ground("go1", '<geom type="box" size="3 3 .1"/>')
    env_cfg = ManagerBasedRlEnvCfg(
        decimation=1,
        scene=SceneCfg(num_envs=2, env_spacing=4.0, entities={"robot": cfg}),
        sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.002)),
        events=events,
        seed=1,
    )
    with pytest.warns(UserWarning, match=r"fixes a geom to the world \(robot/geom_0\)"):
        env = ManagerBasedRlEnv(env_cfg, device="cpu")
    env.reset()
    assert not env.scene.env_origins.any()
    data = env.scene["robot"].data
    x = data.root_link_pos_w[:, 0] - 0.5
    assert (x > 0.1).all() and (x < 0.2).all()
    view = ViewerConfig(origin_type=ViewerConfig.OriginType.ASSET_ROOT, entity_name="robot")
    assert tracked_body_id(env.sim.mj_model, view) == data.indexing.root_body_id


def test_worlds_on_a_plane_of_the_robots_own_stand_apart():
    """Space worlds where the ground is everywhere."""
    scene = Scene(
        SceneCfg(num_envs=4, env_spacing=4.0, entities={"robot": on_ground("go1")}), "cpu"
    )
    assert len(scene.env_origins.unique(dim=0)) == 4


def test_free_joints_within_bodies_are_refused():
    """Name both bodies: MuJoCo takes free joints in the world only."""
    inner = '<body name="r"><freejoint/><geom size="1"/></body>'
    xml = f'<mujoco><worldbody><body name="ground">{inner}</body></worldbody></mujoco>'
    with pytest.raises(ValueError, match="freejoint is on body 'r' within 'ground', but MuJoCo"):
        EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml)).build()
