"""Entity data against MuJoCo C, on bases and joints of every kind."""

import inspect

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.entity import EntityCfg, EntityData
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import MujocoCfg, Simulation, SimulationCfg
from tests.robots import robot_file

LIMBS = """
  <geom name="trunk" type="box" size=".3 .1 .05" pos=".05 .02 0" euler="10 0 30"/>
  <site name="imu" pos=".1 0 .05" euler="0 40 0"/>
  {joint}
  <body name="upper" pos=".3 0 0" euler="0 20 0">
    <joint name="shoulder" axis="0 1 0" range="-1 1" damping=".1"/>
    <geom name="upper" type="capsule" fromto="0 0 0 .2 .05 0" size=".03"/>
    <body name="lower" pos=".2 0 0">
      <joint name="wrist" type="ball" damping=".1"/>
      <geom name="lower" type="box" size=".1 .03 .02" pos=".1 0 .01"/>
      <body name="tip" pos=".2 0 0">
        <joint name="finger" type="slide" axis="1 0 0" range="0 .1" damping=".5"/>
        <geom name="tip" size=".02" pos="0 .01 0"/>
        <site name="tip" pos=".02 0 0" euler="0 0 70"/>
      </body>
    </body>
  </body>
"""
MODEL = """
<mujoco>
  <worldbody><body name="base">{limbs}</body></worldbody>
  <tendon>
    <fixed name="sum"><joint joint="shoulder" coef=".5"/><joint joint="finger" coef="2"/></fixed>
    <spatial name="string" stiffness="20"><site site="imu"/><site site="tip"/></spatial>
  </tendon>
  <actuator>
    <motor name="shoulder" joint="shoulder"/><motor name="pull" tendon="string" gear=".3"/>
  </actuator>
</mujoco>
"""
BASES = {"floating": "<freejoint/>", "fixed": "", "hinged": '<joint name="root" axis="0 0 1"/>'}
ROBOTS = {
    "go1": "unitree_go1/go1.xml",
    "g1": "unitree_g1/g1.xml",
    "yam": "i2rt_yam/yam.xml",
}
WORLDS = 4
FRAMES = ("root_link", "root_com", "body_link", "body", "body_com", "geom", "site")
QUANTITIES = ("pose", "vel", "pos", "quat", "lin_vel", "ang_vel")


def cfg(base: str) -> EntityCfg:
    """Configure a robot, or hinge, slide, ball joint and tendons on a base of a kind."""
    if base in ROBOTS:
        path = str(robot_file(ROBOTS[base]))
        return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(path))
    xml = MODEL.format(limbs=LIMBS.format(joint=BASES[base]))
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(pos=(0.5, -0.25, 2.0)),
    )


class Case:
    """An entity beside another one, all worlds in different motion, and MuJoCo C's own data."""

    def __init__(self, base: str, sim_cfg: SimulationCfg | None = None) -> None:
        entities = {"other": cfg("floating"), "robot": cfg(base)}
        self.scene = Scene(SceneCfg(num_envs=WORLDS, entities=entities), "cpu")
        sim_cfg = sim_cfg or SimulationCfg()
        self.sim = Simulation(WORLDS, sim_cfg, spec=self.scene.spec, device="cpu")
        self.scene.initialize(self.sim.mj_model, self.sim.model, self.sim.data)
        self.model = self.sim.mj_model
        rng = np.random.default_rng(3)
        self.mj = [mujoco.MjData(self.model) for _ in range(WORLDS)]
        data = self.sim.data
        for world, mj in enumerate(self.mj):
            mj.qvel[:] = rng.normal(size=self.model.nv)
            mujoco.mj_integratePos(self.model, mj.qpos, rng.normal(size=self.model.nv), 0.3)
            mj.ctrl[:] = rng.normal(size=self.model.nu)
            mj.xfrc_applied[1:] = rng.normal(size=(self.model.nbody - 1, 6))
            for name in ("qpos", "qvel", "ctrl", "xfrc_applied"):
                rounded = torch.from_numpy(getattr(mj, name)).float()
                getattr(data, name)[world] = rounded
                getattr(mj, name)[:] = rounded.numpy()
            mujoco.mj_forward(self.model, mj)
        self.sim.forward()

    @property
    def data(self) -> EntityData:
        """The entity's data."""
        return self.scene["robot"].data

    def stack(self, read) -> torch.Tensor:
        """Collect a quantity of MuJoCo's data over worlds."""
        return torch.from_numpy(np.stack([np.array(read(mj)) for mj in self.mj])).float()


@pytest.fixture(params=BASES)
def case(request) -> Case:
    """Give one case for each kind of base."""
    return Case(request.param)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Compare at single precision of numbers around one."""
    return ours.shape == theirs.shape and torch.allclose(ours, theirs, atol=2e-6, rtol=2e-6)


def same_rotation(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Compare quaternions up to their sign."""
    return ours.shape == theirs.shape and bool(
        ((ours * theirs).sum(-1).abs() > 1 - 1e-6).all()
        and torch.allclose(ours.norm(dim=-1), torch.ones(ours.shape[:-1]), atol=1e-5)
    )


OBJECTS = {
    "body_link": (mujoco.mjtObj.mjOBJ_XBODY, "body_ids", "xpos", "xquat"),
    "body_com": (mujoco.mjtObj.mjOBJ_BODY, "body_ids", "xipos", "xiquat"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "geom_ids", "geom_xpos", "geom_xquat"),
    "site": (mujoco.mjtObj.mjOBJ_SITE, "site_ids", "site_xpos", "site_xquat"),
}


@pytest.mark.parametrize("family", OBJECTS)
def test_frames_agree_with_mujoco(case, family):
    """Read poses and velocities of links, centers of mass, geoms and sites as MuJoCo has them."""
    kind, ids, pos, quat = OBJECTS[family]
    data = case.data
    ids = getattr(data.indexing, ids).tolist()

    def velocity(mj: mujoco.MjData) -> np.ndarray:
        result = np.zeros((len(ids), 6))
        for row, i in zip(result, ids, strict=True):
            mujoco.mj_objectVelocity(case.model, mj, kind, i, row, 0)
        return np.concatenate([result[:, 3:], result[:, :3]], axis=1)

    assert close(getattr(data, f"{family}_pos_w"), case.stack(lambda mj: getattr(mj, pos)[ids]))
    quats = case.stack(lambda mj: getattr(mj, quat)[ids])
    assert same_rotation(getattr(data, f"{family}_quat_w"), quats)
    velocities = case.stack(velocity)
    assert close(getattr(data, f"{family}_vel_w"), velocities)
    assert close(getattr(data, f"{family}_lin_vel_w"), velocities[..., :3])
    assert close(getattr(data, f"{family}_ang_vel_w"), velocities[..., 3:])
    pose = getattr(data, f"{family}_pose_w")
    assert torch.equal(pose[..., :3], getattr(data, f"{family}_pos_w"))
    assert torch.equal(pose[..., 3:], getattr(data, f"{family}_quat_w"))
    if family.startswith("body"):
        root = family.replace("body", "root")
        for part in ("pose_w", "vel_w", "pos_w", "quat_w", "lin_vel_w", "ang_vel_w"):
            ours = getattr(data, f"{root}_{part}")
            assert torch.allclose(ours, getattr(data, f"{family}_{part}")[:, 0], atol=1e-7)


@pytest.mark.parametrize("family", OBJECTS)
def test_velocities_are_derivatives_of_positions(case, family):
    """Move all joints a little at their velocities: frames move as their velocities say."""
    data, dt = case.data, 1e-6
    ids = getattr(data.indexing, OBJECTS[family][1]).tolist()
    velocity = getattr(data, f"{family}_lin_vel_w").double()

    def moved(mj: mujoco.MjData, time: float) -> np.ndarray:
        after = mujoco.MjData(case.model)
        after.qpos[:], after.mocap_pos[:], after.mocap_quat[:] = (
            mj.qpos,
            mj.mocap_pos,
            mj.mocap_quat,
        )
        mujoco.mj_integratePos(case.model, after.qpos, mj.qvel, time)
        mujoco.mj_kinematics(case.model, after)
        return getattr(after, OBJECTS[family][2])[ids]

    differences = [(moved(mj, dt) - moved(mj, -dt)) / (2 * dt) for mj in case.mj]
    assert np.allclose(velocity.numpy(), np.stack(differences), atol=1e-5)


def moved(case: Case, mj: mujoco.MjData, time: float) -> mujoco.MjData:
    """Move all joints at their velocities for a time [s]."""
    after = mujoco.MjData(case.model)
    after.mocap_pos[:], after.mocap_quat[:] = mj.mocap_pos, mj.mocap_quat
    after.qpos[:] = mj.qpos
    mujoco.mj_integratePos(case.model, after.qpos, mj.qvel, time)
    mujoco.mj_kinematics(case.model, after)
    mujoco.mj_comPos(case.model, after)
    mujoco.mj_tendon(case.model, after)
    return after


def turn(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Rotation vectors in the world that take orientations to others, each shape [n, 4]."""
    result = np.zeros((len(before), 3))
    for row, a, b in zip(result, before, after, strict=True):
        inverse, product = np.zeros(4), np.zeros(4)
        mujoco.mju_negQuat(inverse, a)
        mujoco.mju_mulQuat(product, b, inverse)
        mujoco.mju_quat2Vel(row, product, 1.0)
    return result


def quats(mj: mujoco.MjData, family: str, ids: list[int]) -> np.ndarray:
    """Orientations of frames, most of which MuJoCo has as matrices."""
    if family == "body_link":
        return mj.xquat[ids]
    name = {"body_com": "ximat", "geom": "geom_xmat", "site": "site_xmat"}[family]
    result = np.zeros((len(ids), 4))
    for row, matrix in zip(result, getattr(mj, name)[ids], strict=True):
        mujoco.mju_mat2Quat(row, matrix)
    return result


@pytest.mark.parametrize("family", OBJECTS)
def test_angular_velocities_are_derivatives_of_orientations(case, family):
    """Move all joints a little at their velocities: frames turn as their velocities say."""
    data, dt = case.data, 1e-6
    ids = getattr(data.indexing, OBJECTS[family][1]).tolist()
    differences = [
        turn(quats(moved(case, mj, -dt), family, ids), quats(moved(case, mj, dt), family, ids))
        / (2 * dt)
        for mj in case.mj
    ]
    ours = getattr(data, f"{family}_ang_vel_w").double().numpy()
    assert np.allclose(ours, np.stack(differences), atol=1e-5)


def test_rates_are_derivatives(case):
    """Differentiate joint positions, ball joint orientations and tendon lengths."""
    data, dt = case.data, 1e-6
    before = [moved(case, mj, -dt) for mj in case.mj]
    after = [moved(case, mj, dt) for mj in case.mj]

    def rate(read) -> np.ndarray:
        pairs = zip(before, after, strict=True)
        return np.stack([(np.array(read(b)) - read(a)) / (2 * dt) for a, b in pairs])

    q, tendons = data.indexing.joint_q_adr.tolist(), data.indexing.tendon_ids.tolist()
    assert np.allclose(data.joint_vel, rate(lambda mj: mj.qpos[q]), atol=1e-5)
    assert np.allclose(data.tendon_vel, rate(lambda mj: mj.ten_length[tendons]), atol=1e-5)
    adr = data.indexing.ball_joint_q_adr[0].tolist()
    for world, (a, b) in enumerate(zip(before, after, strict=True)):
        inverse, product, spin = np.zeros(4), np.zeros(4), np.zeros(3)
        mujoco.mju_negQuat(inverse, a.qpos[adr])
        mujoco.mju_mulQuat(product, inverse, b.qpos[adr])  # in the child's frame
        mujoco.mju_quat2Vel(spin, product, 2 * dt)
        assert np.allclose(data.ball_joint_ang_vel[world, 0], spin, atol=1e-5)


def test_joints_tendons_and_forces_agree_with_mujoco(case):
    """Read one column a joint, tendon and actuator, whatever joints lie between."""
    data, model = case.data, case.model
    names = [f"robot/{name}" for name in case.scene["robot"].joint_names]
    q = [model.jnt_qposadr[model.joint(name).id] for name in names]
    v = [model.jnt_dofadr[model.joint(name).id] for name in names]
    assert case.scene["robot"].joint_names[-2:] == ("shoulder", "finger")
    assert close(data.joint_pos, case.stack(lambda mj: mj.qpos[q]))
    assert close(data.joint_vel, case.stack(lambda mj: mj.qvel[v]))
    theirs = case.stack(lambda mj: mj.qacc[v])
    assert torch.allclose(data.joint_acc, theirs, rtol=1e-4, atol=1e-3)
    tendons = [model.tendon(f"robot/{name}").id for name in ("sum", "string")]
    assert close(data.tendon_len, case.stack(lambda mj: mj.ten_length[tendons]))
    assert close(data.tendon_vel, case.stack(lambda mj: mj.ten_velocity[tendons]))
    actuators = [model.actuator(f"robot/{name}").id for name in ("shoulder", "pull")]
    assert close(data.actuator_force, case.stack(lambda mj: mj.actuator_force[actuators]))
    assert close(data.qfrc_actuator, case.stack(lambda mj: mj.qfrc_actuator[v]))
    bodies = data.indexing.body_ids.tolist()
    assert close(data.body_external_wrench, case.stack(lambda mj: mj.xfrc_applied[bodies]))
    assert torch.equal(data.body_external_force, data.body_external_wrench[..., :3])
    assert torch.equal(data.body_external_torque, data.body_external_wrench[..., 3:])

    def external(mj: mujoco.MjData) -> np.ndarray:
        total = np.zeros(model.nv)
        for body in range(1, model.nbody):
            force, torque = mj.xfrc_applied[body, :3], mj.xfrc_applied[body, 3:]
            mujoco.mj_applyFT(model, mj, force, torque, mj.xipos[body], body, total)
        return total[v]

    assert torch.allclose(data.qfrc_external, case.stack(external), atol=1e-4)
    with pytest.raises(NotImplementedError, match="use qfrc_actuator"):
        _ = data.joint_torques


@pytest.mark.parametrize("engine", ["native", pytest.param("warp", marks=pytest.mark.slow_on_warp)])
def test_quantities_of_the_simulation_may_be_kept(engine):
    """Read copies: neither does a write to one change the simulation, nor a step what was read."""
    if engine == "warp":
        pytest.importorskip("mujoco_warp")
    case = Case("floating", SimulationCfg(engine=engine))
    names = [name for name in dir(EntityData) if isinstance(getattr(EntityData, name), property)]
    stored = {"default_joint_pos", "joint_pos_limits", "soft_joint_pos_limits", "gravity_vec_w"}
    names = sorted({*names} - stored - {"joint_torques"})
    values = {name: getattr(case.data, name) for name in names}
    read = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    assert len(read) > 50
    before = {name: value.clone() for name, value in read.items()}
    for name, value in read.items():
        value += 1.0
        assert torch.equal(getattr(case.data, name), before[name]), name
    case.sim.step()
    case.sim.forward()
    moved = [name for name in read if not torch.equal(getattr(case.data, name), before[name])]
    assert len(moved) > 40
    for name, value in read.items():
        assert torch.equal(value, before[name] + 1.0), name


@pytest.mark.parametrize("robot", ROBOTS)
def test_robots_agree_with_mujoco(robot):
    """Read frames, joints and actuators of real robots, and their velocities as derivatives."""
    case = Case(robot)
    data, model, entity = case.data, case.model, case.scene["robot"]
    for family in OBJECTS:
        test_frames_agree_with_mujoco(case, family)
        test_velocities_are_derivatives_of_positions(case, family)
        test_angular_velocities_are_derivatives_of_orientations(case, family)
    test_the_root_is_seen_from_its_own_frame(case)
    joints = [model.joint(f"robot/{name}") for name in entity.joint_names]
    q, v = [joint.qposadr[0] for joint in joints], [joint.dofadr[0] for joint in joints]
    assert close(data.joint_pos, case.stack(lambda mj: mj.qpos[q]))
    assert close(data.joint_vel, case.stack(lambda mj: mj.qvel[v]))
    theirs = case.stack(lambda mj: mj.qacc[v])
    assert torch.allclose(data.joint_acc, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max())
    ranges = torch.tensor(np.stack([joint.range for joint in joints]), dtype=torch.float32)
    assert torch.equal(data.joint_pos_limits[0], ranges)
    actuators = [model.actuator(f"robot/{name}").id for name in entity.actuator_names]
    assert close(data.actuator_force, case.stack(lambda mj: mj.actuator_force[actuators]))


@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_warp_shows_what_the_native_engine_shows(base):
    """Read every quantity on MuJoCo Warp as on MuJoCo C, up to single precision.

    Without constraints: how far solvers go is not what data are about.
    """
    pytest.importorskip("mujoco_warp")
    free = MujocoCfg(disableflags=("constraint",))
    ours, theirs = (
        Case(base, SimulationCfg(engine=engine, mujoco=free)).data for engine in ("warp", "native")
    )
    names = [name for name in dir(EntityData) if isinstance(getattr(EntityData, name), property)]
    read = 0
    for name in set(names) - {"joint_torques"}:
        value, expected = getattr(ours, name), getattr(theirs, name)
        if not isinstance(value, torch.Tensor):
            assert value == expected, name
            continue
        read += value.numel() > 0
        scale = max(1.0, expected[expected.isfinite()].abs().max().item())
        if "quat" in name or "pose" in name:
            value, expected = value[..., -4:], expected[..., -4:]
            value = value * (value * expected).sum(-1, keepdim=True).sign()
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-5 * scale, msg=name)
    assert read > 60


def test_ball_joints_are_indexed_apart(case):
    """Give ball joints four positions and three velocities without shifting other joints."""
    data, model = case.data, case.model
    wrist = model.joint("robot/wrist").id
    q, v = model.jnt_qposadr[wrist], model.jnt_dofadr[wrist]
    assert case.scene["robot"].ball_joint_names == ("wrist",)
    assert close(data.ball_joint_quat[:, 0], case.stack(lambda mj: mj.qpos[q : q + 4]))
    assert close(data.ball_joint_ang_vel[:, 0], case.stack(lambda mj: mj.qvel[v : v + 3]))
    assert data.default_joint_pos.shape == data.joint_pos.shape == data.joint_pos_limits.shape[:2]
    with pytest.raises(ValueError, match="see find_ball_joints"):
        case.scene["robot"].find_joints("wrist")


def test_the_root_is_seen_from_its_own_frame(case):
    """Turn velocities and gravity into the root's frame; tell the heading."""
    data = case.data
    rotation = case.stack(lambda mj: mj.xmat[data.indexing.root_body_id].reshape(3, 3))

    def local(vector: torch.Tensor) -> torch.Tensor:
        return torch.einsum("nij,ni->nj", rotation, vector)

    for frame in ("link", "com"):
        for part in ("lin_vel", "ang_vel"):
            world = getattr(data, f"root_{frame}_{part}_w")
            assert close(getattr(data, f"root_{frame}_{part}_b"), local(world))
    assert close(data.projected_gravity_b, local(torch.tensor([[0.0, 0.0, -1.0]] * WORLDS)))
    assert close(data.heading_w, torch.atan2(rotation[:, 1, 0], rotation[:, 0, 0]))


def test_encoders_add_their_bias():
    """Add the bias to positions, not to the state."""
    case = Case("fixed")
    case.data.encoder_bias[1] = 0.25
    difference = case.data.joint_pos_biased - case.data.joint_pos
    assert torch.allclose(difference[1], torch.full((2,), 0.25)) and not difference[0].any()


def test_defaults_follow_a_changed_qpos0():
    """Shift default joint positions by as much as a world's `qpos0`, and keep users' edits."""
    case = Case("floating")
    data, sim = case.data, case.sim
    data.default_joint_pos[:, 1] += 0.5
    q = data.indexing.joint_q_adr
    sim.expand_model_fields(("qpos0",))
    sim.model.qpos0[2, q[0]] += 0.25
    expected = torch.tensor([[0.0, 0.5], [0.0, 0.5], [0.25, 0.5], [0.0, 0.5]])
    assert torch.allclose(data.default_joint_pos, expected)
    sim.model.qpos0[2, q[0]] -= 0.25
    assert torch.allclose(data.default_joint_pos, torch.tensor([0.0, 0.5]).repeat(4, 1))


def _properties(cls: type) -> dict[str, property]:
    return {name: p for name, p in inspect.getmembers(cls) if isinstance(p, property)}


def test_properties_are_written_out():
    """Editors and type checkers find each property by its name, and read its shape and unit."""
    for name, read in _properties(EntityData).items():
        assert read.fget is not None and read.fget.__name__ == name
        if read.fget.__annotations__["return"] == "torch.Tensor" and name != "joint_torques":
            assert "[num_envs" in (read.__doc__ or ""), name
    assert {f"{frame}_{quantity}_w" for frame in FRAMES for quantity in QUANTITIES} <= _properties(
        EntityData
    ).keys()
