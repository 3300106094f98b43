"""Check that the terms of the projects do what they say: python inspect_tasks.py MOTION_FILE."""

import sys

import torch
from mimic.mdp import PacedMotionCommand, WaveCommand
from mjlab.envs import ManagerBasedRlEnv
from mjlab.sensor import CameraSensor, TerrainHeightSensor
from mjlab.tasks.registry import load_env_cfg
from picker.tasks.lift.mdp import CubeHeights, GripperAction, SmoothJointPositionAction
from trotter.velocity.mdp import trunk_of_feet


def make_env(task: str, num_envs: int, **motion: str) -> ManagerBasedRlEnv:
    """Build a task."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed = num_envs, 1
    for name, value in motion.items():
        setattr(cfg.commands["motion"], name, value)
    if cfg.scene.terrain is not None and cfg.scene.terrain.terrain_generator is not None:
        cfg.scene.terrain.terrain_generator.num_rows = 2
        cfg.scene.terrain.terrain_generator.num_cols = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    env.reset(seed=1)
    return env


def inspect_trotter() -> None:
    """Check the quadruped: friction of feet, scales of actions, scans, and commands."""
    env = make_env("Mjlab-Velocity-Rough-Trotter", 6)
    robot = env.scene["robot"]
    feet = robot.indexing.geom_ids[robot.find_geoms(".*_foot_collision")[0]]
    friction = env.sim.model.geom_friction[:, feet, 0]
    assert (friction == friction[:, :1]).all() and len(friction[:, 0].unique()) == 6
    assert friction.min() >= 0.4 and friction.max() <= 1.1
    action = env.action_manager.get_term("joint_pos")
    scale = action.scale.expand(6, 12)[0]
    names = dict(zip(action.target_names, scale.tolist(), strict=True))
    assert names["FR_hip_joint"] == names["RL_thigh_joint"] != names["FR_calf_joint"]
    # Encoders have a bias, so that zero actions hold the biased default posture.
    env.step(torch.zeros(6, 12))
    bias = robot.data.encoder_bias
    target, expected = robot.data.joint_pos_target, robot.data.default_joint_pos - bias
    running = ~env.reset_buf  # on rough terrain, an episode may end at once
    assert running.sum() > 3
    torch.testing.assert_close(target[running], expected[running])
    assert bias.abs().max() > 0 and isinstance(env.scene["foot_height_scan"], TerrainHeightSensor)
    assert env.scene["foot_height_scan"].data.heights.shape == (6, 4)
    # Geoms match by the beginnings of their names: calves touch the ground, too.
    calves, _ = robot.find_geoms(".*_calf_collision1")
    model = env.sim.mj_model
    assert model.geom_contype[robot.indexing.geom_ids[calves]].all() and model.nexclude == 0
    assert trunk_of_feet(env, calves).tolist() == [robot.indexing.root_body_id] * 4
    # The last targets are kept, and targets change by a bounded step.
    for step in range(1, 4):
        env.step(torch.full((6, 12), 5.0))
        running &= ~env.reset_buf
        moved = (robot.data.joint_pos_target - expected)[running].abs().amax()
        assert moved <= 0.1 * step + 1e-5
    jerkiness = env.reward_manager.get_term_cfg("jerkiness").func
    assert jerkiness.num_calls == env.common_step_counter
    assert env.reward_manager._episode_sums["jerkiness"].abs().min() > 0
    command = env.command_manager.get_term("twist")
    command.vel_command_b[:] = 0.5
    assert (env.command_manager.get_command("twist") == 0.5).all()
    obs = env.step(torch.zeros(6, 12))[0]
    assert obs["critic"].shape[1] == obs["actor"].shape[1] + 4 + 4 + 4 + 12
    _, extras = env.reset()
    assert {"Curriculum/terrain_levels/mean", "Episode_Reward/pose"} <= set(extras["log"])
    env.close()


def inspect_mimic(motion_file: str) -> None:
    """Check the humanoid: its motion, its own commands, and terms with state."""
    env = make_env("Mimic-Biped", 4, motion_file=motion_file, sampling_mode="start")
    command = env.command_manager.get_term("motion")
    wave = env.command_manager.get_term("wave")
    assert isinstance(command, PacedMotionCommand) and isinstance(wave, WaveCommand)
    command.cfg.hold_prob = 0.0
    first = command.time_steps.clone()
    env.step(torch.zeros(4, 11))
    assert (command.time_steps == first + 1).all()
    command.cfg.hold_prob = 1.0
    env.step(torch.zeros(4, 11))
    assert (command.time_steps == first + 1).all() and command.held.all()
    assert env.command_manager.get_command("motion").shape == (4, 2 * 11 + 1)
    assert (env.command_manager.get_command("motion")[:, -1] == 1.0).all()
    before = env.command_manager.get_command("wave").clone()
    wave.time_left[:2] = 0.0
    env.step(torch.zeros(4, 11))
    changed = (env.command_manager.get_command("wave") != before).any(dim=1)
    assert changed.tolist() == [True, True, False, False]
    assert wave.age.tolist() == [1, 1, 4, 4]
    power = env.reward_manager.get_term_cfg("power").func
    assert (power.count > 0).all()
    _, extras = env.reset(env_ids=torch.tensor([0]))
    assert wave.age.tolist() == [1, 1, 4, 4]
    assert power.count.tolist()[0] == 0 and (power.count[1:] > 0).all()
    assert {"Metrics/motion/error_heading", "Metrics/wave/hand_error"} <= set(extras["log"])
    command.time_steps[:] = command.motion.time_step_total - 1
    assert env.termination_manager.get_term_cfg("motion_over").func(env, "motion").all()
    env.close()


def inspect_picker() -> None:
    """Check the arm: actions of its own, gains, cameras, and records."""
    env = make_env("Picker-Lift-Depth", 3)
    arm, gripper = (env.action_manager.get_term(name) for name in ("arm", "gripper"))
    assert isinstance(arm, SmoothJointPositionAction) and isinstance(gripper, GripperAction)
    robot = env.scene["robot"]
    joints, _ = robot.find_joints("joint[1-5]")
    (finger,), _ = robot.find_joints("left_finger")
    action = torch.zeros(3, 6)
    action[:, 5] = 1.0
    env.step(action)
    default = robot.data.default_joint_pos[:, joints]
    torch.testing.assert_close(robot.data.joint_pos_target[:, joints], default)
    action[:, :5] = 1.0
    env.step(action)
    reached = robot.data.joint_pos_target[:, joints] - default
    scale = torch.tensor([0.3, 0.3, 0.3, 0.4, 0.8])
    torch.testing.assert_close(reached, (0.7 * scale).expand(3, 5))
    assert (robot.data.joint_pos_target[:, finger] == 0.035).all()
    gains = env.sim.model.actuator_gainprm[:, robot.indexing.ctrl_ids, 0]
    nominal = torch.tensor([60.0, 60.0, 60.0, 30.0, 20.0, 400.0])
    assert ((gains / nominal - 1).abs() <= 0.1 + 1e-5).all() and len(gains[:, 0].unique()) == 3
    for name, kinds in (("wrist_cam", ("depth",)), ("front_cam", ("rgb", "depth"))):
        camera: CameraSensor = env.scene[name]
        for kind in kinds:
            image = getattr(camera.data, kind)
            assert image.shape[:3] == (3, 24, 24) and image.float().std() > 0
    obs = env.step(action)[0]
    assert obs["camera"].shape == (3, 5, 24, 24)
    records = env.recorder_manager.get_term("cube_heights")
    assert isinstance(records, CubeHeights) and (records.highest > 0).all()
    heights = records.highest.clone()
    approach = env.reward_manager.get_term_cfg("approach").func
    assert not approach.least.isinf().any()
    _, extras = env.reset(env_ids=torch.tensor([1]))
    assert records.last[1] == heights[1] and approach.least.isinf().tolist() == [False, True, False]
    assert 0.15 <= float(extras["log"]["Curriculum/raise_goal/z_max"]) <= 0.35
    assert float(extras["log"]["Episode_Metrics/grip_force"]) > 0
    env.close()


def inspect_gripper() -> None:
    """Check that the gripper moves as far as the policy asks."""
    env = make_env("Picker-Lift-Cartesian", 3)
    arm = env.action_manager.get_term("arm")
    robot = env.scene["robot"]
    (site,), _ = robot.find_sites("grasp_site")
    before = robot.data.site_pos_w[:, site]
    action = torch.zeros(3, 4)
    action[:, 2] = 1.0
    for _ in range(10):
        env.step(action)
    assert (robot.data.site_pos_w[:, site, 2] > before[:, 2] + 0.01).all()
    assert (arm.largest <= 0.2 + 1e-6).all()
    env.close()


if __name__ == "__main__":
    inspect_trotter()
    inspect_mimic(sys.argv[1])
    inspect_picker()
    inspect_gripper()
    print("inspected all")
