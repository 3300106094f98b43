"""Worlds that a task's environment drives."""

from __future__ import annotations

import logging
import warnings

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import (
    FaultError,
    LabCfg,
    LiveLab,
    RecorderCfg,
    world_from_env,
    world_from_scene,
    world_from_spec,
)
from manyworlds.lab.verbs import VerbError
from manyworlds.tasks import load_env_cfg

TASKS = ["Cartpole-Balance", "Velocity-Rough-Quadruped", "Lift-Cube-Arm"]
FIELDS = ("qpos", "qvel", "ctrl", "act", "xfrc_applied", "mocap_pos")


class LinearPolicy:
    """A fixed linear function of the observations, which remembers its last action."""

    def __init__(self, env: ManagerBasedRlEnv, reach: float = 1.0) -> None:
        generator = torch.Generator().manual_seed(1)
        obs = env.get_observations()["actor"]
        shape = obs.shape[1], env.action_manager.total_action_dim
        self.weights = reach * torch.randn(shape, generator=generator) / shape[0] ** 0.5
        self.last = torch.zeros(1, shape[1])

    def __call__(self, obs):
        self.last = torch.tanh(obs["actor"] @ self.weights + 0.3 * self.last)
        return self.last

    def reset(self, dones=None):
        self.last = torch.zeros_like(self.last)

    def state_dict(self):
        return {"last": self.last.clone()}

    def load_state_dict(self, state):
        self.last = state["last"].clone()


def make_env(task: str, episode_s: float = 0.5, **changes) -> ManagerBasedRlEnv:
    """Build one world of a task, seeded, whose episodes are short."""
    cfg = load_env_cfg(task)
    cfg.scene.num_envs, cfg.seed, cfg.episode_length_s = 1, 5, episode_s
    for name, value in changes.items():
        setattr(cfg, name, value)
    return ManagerBasedRlEnv(cfg, device="cpu")


def open_task(task: str = "Cartpole-Balance", reach: float = 1.0, **changes) -> LiveLab:
    """A lab that waits for steps, driven by a task with a linear policy."""
    env = make_env(task, **changes)
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(to_file=False))
    return LiveLab.driven_by(env, LinearPolicy(env, reach), cfg)


def state_of(lab: LiveLab) -> bytes:
    """The state now, with the time."""
    snapshot = lab.snapshot
    parts = [np.ravel(getattr(snapshot, name)) for name in FIELDS]
    return np.concatenate([[snapshot.time], *parts]).tobytes()


def steps_of(lab: LiveLab, num_steps: int = 40) -> list[bytes]:
    """States after each of some physics steps."""
    states = []
    for _ in range(num_steps):
        lab.step()
        states.append(state_of(lab))
    return states


def alone(task: str, periods: int) -> list[tuple[bytes, dict[str, bytes], float, dict, int]]:
    """State, model rows, reward and its terms, and ends of episodes after each control step."""
    env = make_env(task)
    policy, ends, rows = LinearPolicy(env), 0, []
    for _ in range(periods):
        with torch.no_grad():
            _, reward, terminated, truncated, _ = env.step(policy(env.get_observations()))
        if (dones := terminated | truncated).any():
            policy.reset(dones)
            ends += 1
        world = world_from_env(env, 0)
        data = world.new_data()
        parts = [[data.time], *(np.ravel(getattr(data, name)) for name in FIELDS)]
        model = {
            name: getattr(world.model, name).tobytes()
            for name in env.sim.expanded_fields
            if hasattr(world.model, name)
        }
        terms = {n: value for n, (value,) in env.reward_manager.get_active_iterable_terms(0)}
        rows.append((np.concatenate(parts).tobytes(), model, float(reward), terms, ends))
    env.close()
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_the_world_is_that_of_the_environment_to_the_bit(task):
    """Drive a lab through ends of episodes: states, model, rewards of the environment alone."""
    expected = alone(task, 60)
    lab = open_task(task)
    decimation = lab.environment.env.cfg.decimation
    for state, model, reward, terms, ends in expected:
        times = {lab.step().time for _ in range(decimation)}
        assert len(times) == decimation  # each physics step is seen
        assert state_of(lab) == state
        for name, values in model.items():
            assert getattr(lab.world.model, name).tobytes() == values, name
        report = lab.environment.report
        assert (report.total, report.rewards, report.episodes) == (reward, terms, ends)
    assert expected[-1][-1] > 0 and lab.environment.report.last_end
    lab.stop()


def test_all_that_is_written_is_read_at_once():
    """Read derived fields after a step: they belong to the new state."""
    lab = open_task("Lift-Cube-Arm")
    snapshot = lab.step(7)
    data = mujoco.MjData(lab.world.model)
    data.qpos[:], data.mocap_pos[:], data.mocap_quat[:] = (
        snapshot.qpos,
        snapshot.mocap_pos,
        snapshot.mocap_quat,
    )
    mujoco.mj_kinematics(lab.world.model, data)
    assert np.array_equal(snapshot.xpos, data.xpos)
    assert snapshot.stepper == "environment" and lab.why_not_moving("robot") == [
        "the world waits for steps (direct mode)"
    ]
    lab.stop()


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_restored_world_goes_on_exactly(task, tmp_path):
    """Save in the middle of a control step, step on through resets, restore: the same steps."""
    lab = open_task(task)
    lab.step(3 * lab.environment.env.cfg.decimation + 1)
    lab.states.save("here")
    path = lab.states.write("here", tmp_path)
    expected = steps_of(lab)
    report = lab.environment.report
    lab.states.restore("here")
    assert steps_of(lab) == expected and lab.environment.report == report
    lab.states.restore("here")
    lab.recorder.start()
    lab.step(9)
    lab.recorder.stop()
    lab.states.restore("here")
    lab.replay.start()
    lab.step(5)
    lab.replay.stop()
    assert steps_of(lab) == expected
    other = open_task(task)
    other.step(2)
    other.states.read(path)
    other.states.restore("here")
    assert steps_of(other) == expected
    for one in (lab, other):
        one.stop()


def test_a_pull_moves_the_robot_and_the_policy_reacts():
    """Pull the cart: another path, other actions; let go, and no force is left."""
    labs = [open_task(episode_s=100.0) for _ in range(2)]
    pulled, free = labs
    for lab in labs:
        lab.step(10)
    body = pulled.world.model.body("cartpole/cart").id
    point = pulled.snapshot.xpos[body].copy()
    pulled.perturbation.grab(body, point)
    for _ in range(20):
        pulled.perturbation.pull(point + np.array([1.0, 0.0, 0.0]))
        pulled.step()
        free.step()
    assert np.abs(pulled.snapshot.xfrc_applied[body]).max() > 0.0
    assert np.array_equal(
        pulled.environment.env.sim.data.xfrc_applied[0, body].numpy(),
        pulled.snapshot.xfrc_applied[body].astype(np.float32),
    )
    assert pulled.snapshot.qpos[0] > free.snapshot.qpos[0] + 1e-3
    assert (pulled.snapshot.ctrl != free.snapshot.ctrl).any()
    pulled.perturbation.release()
    pulled.step()
    assert not pulled.snapshot.xfrc_applied.any()
    for lab in labs:
        lab.stop()


def test_positions_and_the_model_are_taken_from_the_lab():
    """Write positions, a mass and gravity in the lab: the environment continues from them."""
    lab = open_task(episode_s=100.0)
    lab.step(7)

    def change(model, data):
        data.qpos[1] = 0.1
        model.body_mass[-1] = 0.35
        model.opt.gravity[2] = -3.0

    lab.loop.do(change)
    lab.step(10)
    sim = lab.environment.env.sim
    assert float(sim.model.opt.gravity[0, 2]) == -3.0
    assert float(sim.model.body_mass[0, -1]) == np.float32(0.35)
    assert lab.world.model.body_mass[-1] == 0.35
    lab.set_option("gravity", (0.0, 0.0, -2.0))
    lab.step(10)
    assert float(sim.model.opt.gravity[0, 2]) == -2.0
    lab.reset()
    lab.step(10)
    assert lab.world.model.opt.gravity[2] == -2.0  # as in plain MuJoCo, a reset keeps the model
    lab.stop()


def test_a_position_is_written_in_double_precision():
    """Set a position between two physics steps: it enters with all its digits."""
    lab = open_task(episode_s=100.0)
    lab.step(6)
    model, data = lab.world.model, mujoco.MjData(lab.world.model)

    def change(_, now):
        now.qpos[0] = 0.123456789012345
        state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
        mujoco.mj_getState(model, now, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)

    lab.loop.do(change)
    lab.step()
    mujoco.mj_step(model, data)
    assert lab.snapshot.qpos.tobytes() == data.qpos.tobytes()
    lab.stop()


def test_others_may_take_the_robot():
    """Take the robot: its targets are the controls, exactly; give it back: the policy acts."""
    lab = open_task(episode_s=100.0)
    robot = lab["cartpole"]
    assert robot.owner == "policy"
    lab.step(7)
    robot.take("panel")
    robot.write("panel", [0.1])
    assert [lab.step().ctrl.tolist() for _ in range(7)] == [[0.1]] * 7
    robot.take("policy")
    assert lab.step(5).ctrl.tolist() != [0.1]
    lab.stop()


def test_a_reset_starts_an_episode():
    """Reset the lab, also paused: a new episode, with the task's randomization."""
    lab = open_task(episode_s=100.0)
    starts = set()
    lab.pause()
    for _ in range(3):
        lab.reset()
        assert lab.snapshot.time == 0.0 and lab.environment.report.step == 0
        starts.add(lab.snapshot.qpos.tobytes())
        lab.step(7)
    assert len(starts) == 3
    lab.stop()


def test_an_end_is_only_reported_on_request():
    """Turn automatic resets off: the time limit is reported, and the world continues."""
    lab = open_task(episode_s=0.2)
    assert lab.call("set_auto_reset", on=False)["on"] is False
    period = lab.environment.env.cfg.decimation
    for _ in range(12):
        lab.step(period)
    report = lab.environment.report
    assert report.ended_by == ("time_out",) and report.episodes == 0 and report.step == 12
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the setting is not state that a checkpoint lacks
        lab.environment.memory()
    assert lab.snapshot.time == pytest.approx(12 * lab.environment.env.step_dt)
    lab.environment.auto_reset = True
    lab.step(period)
    assert lab.environment.report.episodes == 1 and lab.snapshot.time == 0.0
    assert lab.environment.report.last_end == "time_out"
    lab.stop()


def test_commands_can_be_set():
    """Hold a velocity command, save and restore it, and refuse what the task does not have."""
    lab = open_task("Velocity-Flat-Quadruped", reach=0.1)
    stepper = lab.environment
    lab.call("steer_command", term="twist", values=[0.5, 0.0, 0.25])
    lab.step(4)
    assert stepper.report.commands["twist"] == (0.5, 0.0, 0.25)
    lab.states.save("fast")
    lab.call("steer_command", term="twist")
    lab.step(4)
    assert stepper.report.commands["twist"] != (0.5, 0.0, 0.25)
    lab.states.restore("fast")
    assert stepper.report.commands["twist"] == (0.5, 0.0, 0.25)
    with pytest.raises(VerbError, match="no command 'spin' that can be set; it has: twist"):
        lab.call("steer_command", term="spin", values=[1.0])
    with pytest.raises(ValueError, match=r"'twist' has 3 values \(lin_vel_x, .*, got 2"):
        stepper.steer("twist", (1.0, 0.0))
    lab.stop()


def test_verbs_of_environments_need_one():
    """Refuse to steer a world of plain MuJoCo, and say how it is opened with its environment."""
    world = world_from_spec(mujoco.MjSpec.from_string("<mujoco/>"))
    with LiveLab(world, LabCfg(mode="direct")) as lab:
        for verb, fields in (
            ("steer_command", {"term": "twist"}),
            ("seek_motion", {"term": "motion", "frame": 3}),
            ("set_auto_reset", {"on": True}),
        ):
            with pytest.raises(VerbError, match="--stepper environment"):
                lab.call(verb, **fields)


def test_a_diverged_world_faults_and_resets():
    """Write NaN: the world stops and says so; a reset continues."""
    lab = open_task(episode_s=100.0)
    lab.step(7)
    lab.post(lambda model, data: data.qvel.__setitem__(0, np.nan))
    with pytest.raises(FaultError, match=r"environment failed at .*diverged \(.*nan\).*reset"):
        lab.step()
    lab.reset()
    assert lab.loop.state != "faulted" and np.isfinite(lab.step(7).qvel).all()
    lab.stop()


def test_errors_of_the_policy_stop_the_world(caplog):
    """Let the policy fail: a fault with its message, and a traceback; then let it succeed."""
    lab = open_task()
    policy, lab.environment.policy = lab.environment.policy, lambda obs: 1 / 0
    message = "environment failed at 0.000 s: ZeroDivisionError: division by zero"
    with caplog.at_level(logging.ERROR), pytest.raises(FaultError, match=message):
        lab.step()
    (record,) = caplog.records
    assert record.exc_info is not None and record.exc_info[0] is ZeroDivisionError
    lab.environment.policy = policy
    lab.reset()
    lab.step(7)
    lab.stop()


def test_a_reset_that_fails_is_told_at_once(caplog):
    """Let a reset of a paused world fail: a fault without a step, with who; the next one mends."""
    lab = open_task("Velocity-Rough-Quadruped", episode_s=100.0)
    lab.step(7)
    lab.pause()
    environment = lab.environment.env
    reset = environment.reset
    environment.reset = lambda: {}["terrain"]
    with caplog.at_level(logging.ERROR):
        lab.reset()
    assert lab.loop.state == "faulted" and lab.snapshot.paused
    assert lab.snapshot.fault.startswith("The environment, at a reset, failed at 0.000 s: KeyError")
    (record,) = caplog.records
    assert record.exc_info is not None and record.exc_info[0] is KeyError
    with pytest.raises(FaultError, match="at a reset"):
        lab.step()
    with pytest.raises(VerbError, match="the task cannot be reset: 'terrain'"):
        lab.call("reset_task")
    environment.reset = reset
    lab.reset()
    assert lab.loop.state != "faulted" and np.isfinite(lab.step(7).qvel).all()
    lab.stop()


def test_widgets_that_fail_at_a_pause_are_reported(caplog):
    """Let a command's widget fail when it hears of a pause: the world goes on, and says it."""
    lab = open_task("Velocity-Rough-Quadruped")

    def broken(paused: bool) -> None:
        raise ZeroDivisionError("no widget")

    lab.environment.env.command_manager.on_viewer_pause = broken
    with caplog.at_level(logging.ERROR):
        lab.environment.show_pause(True)
        lab.step()
    (line,) = lab.loop.reports.lines
    assert "broken" in line and "ZeroDivisionError: no widget" in line
    assert "broken" in caplog.text and lab.loop.state != "faulted"
    lab.stop()


def test_a_rebuild_ends_the_environment():
    """Rebuild the world: plain MuJoCo goes on, from the same state."""
    lab = open_task()
    lab.step(7)
    qpos = lab.snapshot.qpos.copy()
    cfg = load_env_cfg("Cartpole-Balance")
    result = lab.rebuild(world_from_scene(cfg.scene, cfg.sim.mujoco))
    assert result and result.dropped_laws == ("cartpole",) and lab.environment is None
    assert np.array_equal(lab.snapshot.qpos, qpos)
    assert lab.step().stepper == "physics"
    lab.stop()


def test_several_worlds_are_refused():
    """Hand over a batch: the message names the remedy."""
    cfg = load_env_cfg("Cartpole-Balance")
    cfg.scene.num_envs = 2
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with pytest.raises(ValueError, match=r"one world, got 2: set cfg\.scene\.num_envs = 1"):
        LiveLab.driven_by(env)
    env.close()


def test_without_a_policy_actions_are_zero():
    """Open a task without a policy: the quadruped stands; the panel holds the same pose."""
    env = make_env("Velocity-Flat-Quadruped", episode_s=100.0)
    lab = LiveLab.driven_by(env, None, LabCfg(mode="direct"))
    robot = lab["robot"]
    assert robot.owner == "policy" and robot.neutral.any()
    lab.step(200)
    height = lab.snapshot.qpos[2]
    robot.take("panel")
    lab.step(200)
    assert lab.environment.report.episodes == 0
    assert lab.snapshot.qpos[2] == pytest.approx(height, abs=0.02)
    with pytest.raises(RuntimeError, match="environment steps this world, with a policy of its"):
        lab.run_policy("policy.onnx")
    lab.stop()


def test_the_physics_thread_steps_the_environment():
    """Step, save, restore and reset from another thread than that of physics."""
    env = make_env("Cartpole-Balance", episode_s=100.0)
    with LiveLab.driven_by(env, LinearPolicy(env), LabCfg(speed=float("inf"))) as lab:
        lab.loop.mode = "direct"
        assert lab.step(50).step >= 50
        lab.states.save("here")
        lab.loop.mode = "live"
        lab.states.restore("here")
        lab.reset()
    assert lab.loop.state == "stopped" and not lab.loop.fault and lab.environment is None


def test_a_policy_may_only_have_a_reset():
    """Reset, and end an episode: a policy that is a function with `reset` is told."""
    told = []

    class Counting:
        def __call__(self, obs):
            return torch.zeros(1, 1)

        def reset(self, dones=None):
            told.append(dones)

    env = make_env("Cartpole-Balance", episode_s=0.2)
    lab = LiveLab.driven_by(env, Counting(), LabCfg(mode="direct"))
    lab.reset()
    assert told == [None]
    lab.step(5 * env.cfg.decimation)
    assert len(told) == 2 and told[1].tolist() == [True]
    lab.stop()


def test_a_reload_builds_the_environment_again():
    """Reload a lab that a task drives: a new episode of a new environment; states stay."""
    lab = open_task()
    opened = []

    def again() -> LiveLab:
        opened.append(open_task())
        return opened[-1]

    lab.source = again
    lab.step(9)
    saved = lab.states.save("here")
    lab.step(3)
    old, hash_before = lab.environment, lab.world.model_hash
    result = lab.reload()
    assert result and not result.dropped_laws and lab.world.model_hash == hash_before
    assert lab.environment is not old and lab.environment is not None
    assert opened[0].environment is None and opened[0].loop.state == "stopped"
    assert lab.snapshot.time == 0.0 and lab.environment.report.step == 0
    first = steps_of(lab, 20)
    assert lab.snapshot.stepper == "environment" and lab["cartpole"].owner == "policy"
    lab.reset()
    assert lab.step().stepper == "environment"
    assert lab.states["here"] is saved
    lab.states.restore("here")
    assert lab.snapshot.time == saved.time and len(first) == 20
    lab.step(5)
    lab.stop()
