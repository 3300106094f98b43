"""The motion command: frames, the robot's part, sampling, resuming, what it draws."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from manyworlds.tasks.tracking.mdp import MotionLoader
from manyworlds.utils.math import quat_apply, quat_mul, yaw_quat
from tests.browser import free_port, tell_input

EXACT = {"pose_range": {}, "velocity_range": {}, "joint_position_range": (0.0, 0.0)}


def _command(env):
    return env.command_manager.get_term("motion")


def _still(env):
    return torch.zeros(env.num_envs, env.action_manager.total_action_dim)


def test_loader_has_the_bodies_asked_for(clip, tmp_path):
    """Load some bodies of a file and of a motion in memory, in the order asked for."""
    path = clip.save(tmp_path / "clip.npz")
    for source in (str(path), clip):
        loader = MotionLoader(source, torch.tensor([7, 2]), "cpu")
        assert (loader.time_step_total, loader.fps) == (401, 50.0)
        np.testing.assert_array_equal(loader.joint_vel, clip.joint_vel)
        for name in ("body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"):
            np.testing.assert_array_equal(getattr(loader, name), getattr(clip, name)[:, [7, 2]])
    with pytest.raises(ValueError, match="Body 31 is selected, but .* has 30 bodies"):
        MotionLoader(clip, torch.tensor([31]))


def test_episodes_begin_in_the_motion(make_env):
    """Reset without noise: joints, poses and velocities of all tracked bodies are the frame's."""
    env = make_env(num_envs=4, sampling_mode="uniform", **EXACT)
    command = _command(env)
    assert len(command.time_steps.unique()) > 1
    for name in ("joint_pos", "joint_vel", "body_pos_w", "body_quat_w", "body_ang_vel_w"):
        asked, actual = getattr(command, name), getattr(command, f"robot_{name}")
        torch.testing.assert_close(actual, asked, rtol=0.0, atol=2e-5)
    torch.testing.assert_close(
        command.robot_body_lin_vel_w, command.body_lin_vel_w, rtol=0.0, atol=2e-5
    )
    for name in ("pos_w", "quat_w", "lin_vel_w", "ang_vel_w"):
        asked, actual = getattr(command, f"anchor_{name}"), getattr(command, f"robot_anchor_{name}")
        torch.testing.assert_close(actual, asked, rtol=0.0, atol=2e-5)
    assert command.anchor_pos_w[:, :2].sub(env.scene.env_origins[:, :2]).abs().max() < 0.2


def test_noise_stays_in_its_ranges(make_env):
    """Reset with noise: the root is off by at most the range, joints are within soft limits."""
    env = make_env(num_envs=32, sampling_mode="start")
    command = _command(env)
    offset = command.robot.data.root_link_pos_w - command.robot.data.root_link_pos_w.mean(0)
    root = command.robot.data.root_link_pos_w - env.scene.env_origins
    first = command.motion.body_pos_w[0, 0]
    bounds = torch.tensor([0.05, 0.05, 0.01])
    assert ((root - first).abs() <= bounds + 1e-5).all() and offset.abs().max() > 0.0
    off = (command.robot_joint_pos - command.joint_pos).abs()
    assert off.max() <= 0.1 + 1e-5 and off.max() > 0.05
    limits = command.robot.data.soft_joint_pos_limits
    assert (command.robot_joint_pos <= limits[..., 1] + 1e-5).all()


def test_frames_advance_by_one_a_step(make_env, clip):
    """Step: the frame is the next one; a world that was reset stands at its first one."""
    env = make_env(play=True)
    command = _command(env)
    for step in range(1, 4):
        env.step(_still(env))
        assert command.time_steps.tolist() == [step] * 3
        np.testing.assert_array_equal(command.command[1, :29], clip.joint_pos[step])
        np.testing.assert_array_equal(command.command[1, 29:], clip.joint_vel[step])
    env.reset(env_ids=torch.tensor([1]))
    assert command.time_steps.tolist() == [3, 0, 3]
    np.testing.assert_array_equal(command.joint_pos[1], clip.joint_pos[0])
    env.episode_length_buf[2] = env.max_episode_length - 1
    env.step(_still(env))
    assert command.time_steps.tolist() == [4, 1, 0]


def test_the_motion_begins_anew_at_its_end(make_env):
    """Go over the last frame: the robot is back in the first, and what is observed knows."""
    env = make_env(play=True)
    command = _command(env)
    command.time_steps[1] = command.motion.time_step_total - 1
    obs, _, terminated, truncated, _ = env.step(_still(env))
    if bool(terminated[1]):  # the robot was not where the last frame is, which ends the episode
        pytest.fail("the first and the last frame differ")
    assert command.time_steps.tolist() == [1, 0, 1] and not truncated.any()
    torch.testing.assert_close(command.robot_joint_pos[1], command.joint_pos[1])
    torch.testing.assert_close(
        command.robot_body_pos_w[1], command.body_pos_w[1], rtol=0.0, atol=1e-5
    )
    term = slice(58, 61)  # motion_anchor_pos_b, after the command
    torch.testing.assert_close(obs["actor"][1, term], torch.zeros(3), rtol=0.0, atol=1e-5)


def test_relative_poses_bring_the_motion_to_the_robot(make_env):
    """Move, lift and turn the robot: the motion follows level, keeps its height, and turns."""
    env = make_env(play=True)
    command = _command(env)
    pose = env.scene["robot"].data.root_link_pose_w.clone()
    turn = torch.tensor([[0.6, 0.0, 0.0, 0.8]]).expand(3, 4)
    pose[:, :3] += torch.tensor([1.0, -2.0, 0.3])
    pose[:, 3:] = quat_mul(turn, pose[:, 3:])
    env.scene["robot"].write_root_link_pose_to_sim(pose)
    env.sim.forward()
    command.update_relative_body_poses()
    anchor = command.robot_anchor_pos_w
    expected = quat_apply(
        turn[:, None].expand(3, 14, 4), command.body_pos_w - command.anchor_pos_w[:, None]
    )
    expected += torch.cat([anchor[:, :2], command.anchor_pos_w[:, 2:]], dim=1)[:, None]
    torch.testing.assert_close(command.body_pos_relative_w, expected, rtol=0.0, atol=1e-5)
    heading = yaw_quat(command.body_quat_relative_w[:, command.motion_anchor_body_index])
    actual = yaw_quat(command.robot_anchor_quat_w)
    assert (heading * actual).sum(dim=1).abs().min() > 1.0 - 1e-6


def test_relative_poses_are_those_of_the_present_step(make_env):
    """Rewards see the robot as it is after the step, without being told to look again."""
    env = make_env(play=True)
    command, seen = _command(env), []
    compute = env.reward_manager.compute

    def look(dt):
        seen.append((command.body_pos_relative_w.clone(), command.robot_anchor_pos_w.clone()))
        return compute(dt)

    env.reward_manager.compute = look
    for _ in range(3):
        env.step(0.3 * torch.ones_like(_still(env)))
        pos, anchor = seen[-1]
        index = command.motion_anchor_body_index
        torch.testing.assert_close(pos[:, index, :2], anchor[:, :2], rtol=0.0, atol=1e-6)


def test_adaptive_sampling_follows_failures(make_env):
    """Let bin 3 fail: its probability is what the formula gives, and episodes begin there."""
    env = make_env(num_envs=2, adaptive_alpha=0.1, adaptive_kernel_size=2)
    command = _command(env)
    assert command.bin_count == 9
    uniform = torch.full((9,), 1.0 / 9.0)
    torch.testing.assert_close(command.sampling_probabilities(), uniform)
    env.termination_manager.terminated[:] = torch.tensor([True, False])
    command.time_steps[:] = int(3.5 / 9.0 * 401)
    command.reset(torch.arange(2))
    command.compute(dt=0.0)
    failed = torch.zeros(9)
    failed[3] = 0.1
    torch.testing.assert_close(command.bin_failed_count, failed)
    weights = failed + 0.1 / 9.0
    shifted = torch.cat([weights[1:], weights[-1:]])
    expected = (weights + 0.8 * shifted) / 1.8
    torch.testing.assert_close(command.sampling_probabilities(), expected / expected.sum())
    env.termination_manager.terminated[:] = False
    counts = torch.zeros(9)
    for _ in range(300):
        command._resample_command(torch.arange(2))
        counts += torch.bincount(command.time_steps * 9 // 401, minlength=9)
    share = counts / counts.sum()
    assert (share - command.sampling_probabilities()).abs().max() < 0.07


def test_state_resumes_bit_identically(make_env):
    """Save, go on, restore, and go on the same way, sampling and failures included."""
    env = make_env(num_envs=8)
    generator = torch.Generator().manual_seed(1)
    actions = torch.randn(40, 8, 29, generator=generator)
    for action in actions[:10]:
        env.step(action)
    saved = env.state_dict()
    first = [env.step(action) for action in actions[10:]]
    failures = _command(env).bin_failed_count.clone()
    assert failures.any(), "no world failed, so that nothing was sampled again"
    env.load_state_dict(saved)
    for action, (obs, reward, *_) in zip(actions[10:], first, strict=True):
        again, reward_again, *_ = env.step(action)
        assert torch.equal(again["critic"], obs["critic"]) and torch.equal(reward_again, reward)
    assert torch.equal(_command(env).bin_failed_count, failures)


def test_reset_to_frame_is_exact(make_env, clip):
    """Put one robot into a frame that a viewer asks for; refuse one that is not there."""
    env = make_env(num_envs=2)
    command = _command(env)
    command.reset_to_frame(torch.tensor([1]), 123)
    env.sim.forward()
    np.testing.assert_array_equal(command.robot_joint_pos[1], clip.joint_pos[123])
    with pytest.raises(ValueError, match="frames 0 to 400"):
        command.reset_to_frame(torch.tensor([1]), 401)


def test_seeking_puts_one_robot_into_a_frame(make_env, clip):
    """Seek a frame in one world: it is there at once, exactly, and the motion goes on from it."""
    env = make_env(num_envs=2, play=True)
    command = _command(env)
    command.seek(1, 200)
    assert [command.frame_of(i) for i in (0, 1)] == [0, 200]
    np.testing.assert_array_equal(command.robot_joint_pos[1], clip.joint_pos[200])
    env.step(_still(env))
    assert command.time_steps.tolist() == [1, 201]
    with pytest.raises(ValueError, match="frames 0 to 400"):
        command.seek(0, command.num_frames)


def test_a_paused_page_shows_the_frame_at_once(make_env, clip):
    """Drag the slider of a page whose worlds stand still: the robot is put there and drawn."""
    pytest.importorskip("viser", reason="needs the extra 'lab'")
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

    env = make_env(num_envs=2, play=True)
    viewer = ViserPlayViewer(env, lambda obs: _still(env), port=free_port())
    viewer.setup()
    try:
        viewer.pause()
        viewer.select_env(1)
        (motion,) = viewer._commands._sought
        slider = motion.slider
        with viewer.server.atomic():
            slider._impl.value = 150
            tell_input(slider, SimpleNamespace(client="a browser"))
        viewer.tick()
        assert _command(env).time_steps.tolist() == [0, 150]
        np.testing.assert_array_equal(_command(env).robot_joint_pos[1], clip.joint_pos[150])
        assert viewer.get_status().last_error is None
        viewer.select_env(0)
        for left_alone_until, shown in ((float("inf"), 150), (0.0, 0)):
            motion._next = left_alone_until
            viewer.sync_env_to_viewer()
            assert slider.value == shown
    finally:
        viewer.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"anchor_body_name": "left_hip_yaw_link"}, "anchor 'left_hip_yaw_link' is not tracked"),
        ({"body_names": ("pelvis", "tail")}, r"has \['tail'\], which 'robot' does not"),
        ({"motion_fn": None}, "motion_file .*motion convert"),
        ({"sampling_mode": "backwards"}, "choose one of adaptive, uniform, start"),
        ({"adaptive_alpha": 2.0}, "adaptive_alpha is 2.0: .* at most 1.0"),
        ({"adaptive_kernel_size": 0}, "adaptive_kernel_size is 0: .* at least 1"),
    ],
)
def test_wrong_settings_are_refused(make_env, settings, message):
    """Build the task with one mistake each."""
    with pytest.raises(ValueError, match=message):
        make_env(**settings)


def test_a_motion_of_another_robot_or_rate_is_refused(make_env, clip):
    """Track at the wrong rate, with a joint less, and with joints in another order."""
    with pytest.raises(ValueError, match="is 30, but the control rate is 50 .*--output-fps 50"):
        make_env(motion_fn=lambda: replace(clip, fps=30.0))
    fewer = replace(clip, joint_pos=clip.joint_pos[:, 1:], joint_vel=clip.joint_vel[:, 1:])
    with pytest.raises(ValueError, match="'joint_pos' .* 28 elements .* 'robot' has 29"):
        make_env(motion_fn=lambda: fewer)
    swapped = replace(clip, joint_names=clip.joint_names[::-1])
    with pytest.raises(ValueError, match="'joint_pos' .* elements"):
        make_env(motion_fn=lambda: swapped)


def _unnamed(clip, joints=slice(None), bodies=slice(None), **changes):
    """Return the clip without names, with joints and bodies in another order."""
    parts = {name: getattr(clip, name)[:, joints] for name in ("joint_pos", "joint_vel")}
    parts |= {f"body_{n}_w": getattr(clip, f"body_{n}_w")[:, bodies] for n in QUANTITIES}
    return replace(clip, joint_names=(), body_names=(), **{**parts, **changes})


QUANTITIES = ("pos", "quat", "lin_vel", "ang_vel")


def test_a_motion_without_names_is_checked_by_forward_kinematics(make_env, clip, tmp_path):
    """Accept the clip, also as rounded by others; name the farthest body if orders differ."""
    noise = np.random.default_rng(0).normal(0.0, 0.002, clip.body_pos_w.shape)
    make_env(motion_fn=lambda: _unnamed(clip, body_pos_w=clip.body_pos_w + noise))
    count = len(clip.body_names)
    order = np.arange(count)
    first, second = (clip.body_names.index(f"{side}_ankle_roll_link") for side in ("left", "right"))
    order[[first, second]] = second, first
    between = np.linalg.norm(clip.body_pos_w[:, first] - clip.body_pos_w[:, second], axis=1)
    assert between.min() > 0.1
    path = _unnamed(clip, bodies=order).save(tmp_path / "clip.npz")
    pattern = r"clip.npz' are not where its joints put them: body '(left|right)_ankle_roll_link'"
    with pytest.raises(ValueError, match=pattern) as caught:
        make_env(motion_fn=None, motion_file=str(path))
    said = float(str(caught.value).partition("_link' of 'robot' is ")[2].split()[0])
    assert said == pytest.approx(between.mean(), rel=0.1)
    with pytest.raises(ValueError, match="are not where its joints put them"):
        make_env(motion_fn=lambda: _unnamed(clip, bodies=order[::-1]))
    with pytest.raises(ValueError, match="are not where its joints put them"):
        make_env(motion_fn=lambda: _unnamed(clip, joints=np.roll(np.arange(29), 1)))
    scalar_last = np.roll(clip.body_quat_w, -1, axis=-1)
    with pytest.raises(ValueError, match="are not where its joints put them"):
        make_env(motion_fn=lambda: _unnamed(clip, body_quat_w=scalar_last))


class _Canvas:
    def __init__(self):
        self.ghosts, self.frames = [], []

    def get_env_indices(self, num_envs):
        return [1]

    def add_ghost_mesh(self, qpos, model, **kwargs):
        self.ghosts.append((qpos, model, SimpleNamespace(**kwargs)))

    def add_frame(self, position, rotation_matrix, **kwargs):
        self.frames.append((position, rotation_matrix))


def test_the_motion_is_drawn(make_env, clip):
    """Draw a ghost in the motion's place at the world's origin, or a frame for each body."""
    env, canvas = make_env(play=True), _Canvas()
    command = _command(env)
    env.command_manager.debug_vis(canvas)
    [(qpos, model, kwargs)] = canvas.ghosts
    origin = env.scene.env_origins[1].numpy()
    np.testing.assert_allclose(qpos[:3], clip.body_pos_w[0, 0] + origin, rtol=1e-6)
    np.testing.assert_array_equal(qpos[7:].astype(np.float32), clip.joint_pos[0])
    robot = env.scene["robot"].indexing.geom_ids.numpy()
    np.testing.assert_allclose(model.geom_rgba[robot], [[0.5, 0.7, 0.5, 1.0]] * len(robot))
    assert kwargs.alpha == 0.5
    assert not np.allclose(env.sim.mj_model.geom_rgba[robot], model.geom_rgba[robot])
    command.cfg.viz.mode = "frames"
    env.command_manager.debug_vis(canvas)
    assert len(canvas.frames) == 14
    np.testing.assert_allclose(canvas.frames[0][0], command.body_pos_w[1, 0])
