"""Inverse kinematics: Jacobians against MuJoCo C, the solution by hand, and a real arm."""

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.utils.math import (
    quat_box_minus,
    quat_error_magnitude,
    quat_from_euler_xyz,
    quat_mul,
)
from tests.envs.mdp.robot import make_env, mj_data, shake
from tests.robots import robot_file


def ik(frame_type: str = "site", frame_name: str = "tip", **options) -> mdp.DifferentialIKActionCfg:
    """Configure inverse kinematics of the small robot."""
    return mdp.DifferentialIKActionCfg(
        entity_name="robot",
        actuator_names=("shoulder", "elbow", "finger"),
        frame_type=frame_type,
        frame_name=frame_name,
        **options,
    )


@pytest.fixture(scope="module")
def env():
    """Four worlds in different motion."""
    env = make_env()
    shake(env)
    return env


@pytest.mark.parametrize(
    ("frame", "name"), [("body", "tip"), ("body", "lower"), ("site", "tip"), ("geom", "tip")]
)
@pytest.mark.parametrize("floating", [True, False])
def test_jacobian_and_pose_are_those_of_mujoco(frame, name, floating):
    """Agree with mj_jac; joints beyond the frame do not move it."""
    env = make_env(floating=floating)
    shake(env)
    term = ik(frame, name).build(env)
    model = env.sim.mj_model
    jacobian = torch.cat(term._compute_jacobian(), dim=1)
    pos, quat = term._get_frame_pose()
    joints = ("shoulder", "elbow", "finger")
    dofs = [model.joint(f"robot/{joint}").dofadr[0] for joint in joints]
    for world in range(env.num_envs):
        data = mj_data(env, world)
        element = getattr(data, frame)(f"robot/{name}")
        point = element.xpos
        body = element.id if frame == "body" else getattr(model, f"{frame}_bodyid")[element.id]
        expected = np.zeros((6, model.nv))
        mujoco.mj_jac(model, data, expected[:3], expected[3:], point, body)
        np.testing.assert_allclose(jacobian[world].numpy(), expected[:, dofs], atol=2e-6)
        np.testing.assert_allclose(pos[world].numpy(), point, atol=2e-6)
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, quat[world].double().numpy())
        np.testing.assert_allclose(matrix, element.xmat, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "width"),
    [
        ({}, 6),
        ({"use_relative_mode": False}, 7),
        ({"orientation_weight": 0.0}, 3),
        ({"orientation_weight": 0.0, "use_relative_mode": False}, 3),
    ],
)
def test_width_depends_on_the_mode(env, options, width):
    """Take translations and rotations, poses, or positions only."""
    assert ik(**options).build(env).action_dim == width


def test_relative_targets(env):
    """Move the target from the present pose, by scaled translation and rotation."""
    term = ik(delta_pos_scale=0.1, delta_ori_scale=0.2).build(env)
    action = torch.randn(4, 6)
    term.process_actions(action)
    pos, _ = term._get_frame_pose()
    error = term._pose_error()
    torch.testing.assert_close(term._target_pos, pos + 0.1 * action[:, :3])
    torch.testing.assert_close(
        error, action * torch.tensor([0.1] * 3 + [0.2] * 3), atol=1e-5, rtol=0
    )


def test_absolute_targets_are_relative_to_the_worlds_origin(env):
    """Add the world's origin, and bring orientations to length 1."""
    term = ik(use_relative_mode=False).build(env)
    action = torch.randn(4, 7)
    term.process_actions(action)
    assert env.scene.env_origins.unique(dim=0).shape[0] == 4
    torch.testing.assert_close(term._target_pos, action[:, :3] + env.scene.env_origins)
    _, quat = term._get_frame_pose()
    goal = action[:, 3:] / action[:, 3:].norm(dim=1, keepdim=True)
    rotation = quat_box_minus(goal, quat)
    torch.testing.assert_close(term._pose_error()[:, 3:], rotation, atol=1e-4, rtol=0)
    term.process_actions(torch.zeros(4, 7))
    assert term.compute_dq().isfinite().all()


def test_solution_solves_the_normal_equations(env):
    """Weigh the tasks: pose, damping, joints beyond soft limits, posture."""
    robot = env.scene["robot"]
    robot.write_joint_position_to_sim(torch.tensor([0.9, -0.9, 0.0]), [0, 1, 2])
    env.sim.forward()
    term = ik(
        damping=0.3,
        max_dq=1e6,
        position_weight=2.0,
        orientation_weight=0.5,
        joint_limit_weight=3.0,
        posture_weight=0.7,
        posture_target={"elbow": 0.4},
    ).build(env)
    term.process_actions(torch.randn(4, 6))
    dq = term.compute_dq().double()
    weights = torch.tensor([2.0] * 3 + [0.5] * 3).double()
    low, high = robot.data.soft_joint_pos_limits[0, :3].double().unbind(-1)
    for world in range(4):
        jacobian = torch.cat([part[world] for part in term._compute_jacobian()]).double()
        error = term._pose_error()[world].double()
        q = robot.data.joint_pos[world, :3].double()
        posture = torch.tensor([0.3, 0.4, 0.0]).double()
        beyond = torch.tensor([1.0, 1.0, 0.0]).double()
        rows = torch.cat(
            [
                weights.sqrt()[:, None] * jacobian,
                0.3 * torch.eye(3),
                (3.0 * beyond).sqrt().diag(),
                0.7**0.5 * torch.eye(3),
            ]
        )
        right = torch.cat(
            [
                weights.sqrt() * error,
                torch.zeros(3),
                3.0**0.5 * beyond * (torch.where(beyond > 0, q.clamp(low, high), q) - q),
                0.7**0.5 * (posture - q),
            ]
        )
        expected = torch.linalg.lstsq(rows, right[:, None]).solution[:, 0]
        torch.testing.assert_close(dq[world], expected, rtol=1e-4, atol=1e-5)


def test_steps_keep_their_direction_when_they_are_too_large(env):
    """Slow all joints down alike."""
    free, slow = ik(max_dq=1e6).build(env), ik(max_dq=0.05).build(env)
    for term in (free, slow):
        term.process_actions(torch.tensor([[0.3, -0.2, 0.1, 0, 0, 0]]).repeat(4, 1))
    full, limited = free.compute_dq(), slow.compute_dq()
    largest = full.abs().amax(dim=1, keepdim=True)
    assert (largest > 0.05).all()
    torch.testing.assert_close(limited, full * 0.05 / largest)


def test_targets_stay_within_limits_and_clip(env):
    """Never ask for a position beyond a joint's range, or the bounds given."""
    term = ik(clip={"finger": (-0.01, 0.01)}, max_dq=10.0, damping=1e-3).build(env)
    term.process_actions(torch.full((4, 6), 5.0))
    term.apply_actions()
    target = env.scene["robot"].data.joint_pos_target
    low, high = env.scene["robot"].data.joint_pos_limits.unbind(-1)
    assert ((target >= low) & (target <= high)).all()
    assert (target[:, 2].abs() <= 0.01).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"frame_type": "camera"}, "must be 'body', 'site' or 'geom'"),
        ({"frame_name": "hand"}, "'hand' matches none"),
        ({"frame_name": ".*"}, r"must name one site, but matches \['imu', 'tip'\]"),
        ({"frame_name": "imu"}, "does not move with any of the joints"),
        ({"damping": 0.0}, "damping must be positive"),
        ({"max_dq": -1.0}, "max_dq must be positive"),
        ({"posture_target": {"hip": 0.0}}, "'hip' matches none"),
    ],
)
def test_contradictions_are_refused(env, change, message):
    """Say at build time what cannot be."""
    options = {"frame_type": "site", "frame_name": "tip", **change}
    with pytest.raises(ValueError, match=message):
        ik(**options).build(env)


def yam_env(**options) -> ManagerBasedRlEnv:
    """Build an environment of the YAM arm with stiff position actuators."""
    path = str(robot_file("i2rt_yam/yam.xml"))
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_file(path),
        init_state=EntityCfg.InitialStateCfg(
            pos=(0.1, 0.2, 0.3), joint_pos={"joint2": 1.0, "joint3": 1.0, ".*": 0.0}
        ),
        articulation=EntityArticulationInfoCfg(
            actuators=(
                BuiltinPositionActuatorCfg(
                    target_names_expr=("joint[1-6]",), stiffness=300.0, damping=15.0
                ),
            )
        ),
    )
    action = mdp.DifferentialIKActionCfg(
        entity_name="robot",
        actuator_names=("joint[1-6]",),
        frame_type="site",
        frame_name="grasp_site",
        **options,
    )
    return ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=10,
            seed=1,
            scene=SceneCfg(num_envs=8, entities={"robot": robot}),
            sim=SimulationCfg(mujoco=MujocoCfg(timestep=0.002, gravity=(0, 0, 0))),
            actions={"ik": action},
        )
    )


@pytest.mark.parametrize("relative", [False, True])
def test_an_arm_reaches_poses(relative):
    """Bring the YAM's grasp site to poses around its initial one."""
    env = yam_env(use_relative_mode=relative)
    term = env.action_manager.get_term("ik")
    start_pos, start_quat = (part.clone() for part in term._get_frame_pose())
    shift = 0.1 * (2 * torch.rand(8, 3) - 1)
    turn = quat_from_euler_xyz(*(0.4 * torch.rand(3, 8) - 0.2))
    goal_pos, goal_quat = start_pos + shift, quat_mul(turn, start_quat)
    for _ in range(25):
        if relative:
            term._target_pos.copy_(goal_pos)
            _, quat = term._get_frame_pose()
            action = torch.cat([term._pose_error()[:, :3], quat_box_minus(goal_quat, quat)], dim=1)
        else:
            action = torch.cat([goal_pos - env.scene.env_origins, goal_quat], dim=1)
        env.step(action)
    pos, quat = term._get_frame_pose()
    assert (start_pos - goal_pos).norm(dim=1).max() > 0.05
    assert (pos - goal_pos).norm(dim=1).max() < 0.01
    assert quat_error_magnitude(quat, goal_quat).max() < 0.05


def test_engines_agree():
    """Move alike on MuJoCo C and MuJoCo Warp, by Jacobians and wrenches of their own."""
    pytest.importorskip("mujoco_warp")
    tip = SceneEntityCfg("robot", body_names="tip")
    params = {
        "force_range": (0.5, 1.0),
        "torque_range": (0.0, 0.1),
        "duration_s": (0.02, 0.04),
        "cooldown_s": (0.01, 0.03),
        "asset_cfg": tip,
        "body_point_offset": (0.1, 0.0, 0.0),
    }
    push = EventTermCfg(func=mdp.apply_body_impulse, mode="step", params=params)
    states = []
    for engine in ("native", "warp"):
        env = make_env(
            num_envs=2,
            sim=SimulationCfg(engine=engine, mujoco=MujocoCfg(timestep=0.005)),
            actions={"ik": ik(delta_pos_scale=0.2, joint_limit_weight=1.0, posture_weight=0.1)},
            events={"push": push},
        )
        shake(env, steps=8)
        states.append(env.sim.data.qpos.clone())
    assert (states[0] - states[0][:1]).abs().max() > 0.01
    torch.testing.assert_close(*states, atol=2e-4, rtol=0)


def test_weights_of_nothing_are_refused():
    """Refuse an action that follows neither position nor orientation."""
    with pytest.raises(ValueError, match="position_weight and orientation_weight are both 0"):
        mdp.DifferentialIKActionCfg(
            entity_name="robot",
            actuator_names=(".*",),
            frame_name="hand",
            position_weight=0.0,
            orientation_weight=0.0,
        )
