"""Trained policies as controllers."""

from __future__ import annotations

import copy
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.envs import mdp
from manyworlds.lab import (
    LabCfg,
    LiveLab,
    RecorderCfg,
    world_from_file,
    world_from_scene,
    world_from_spec,
)
from manyworlds.tasks import load_env_cfg, load_rl_cfg

pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")
pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")

from manyworlds.rl.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """The folder of a run that learned for two iterations."""
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs, rl_cfg.max_iterations = 16, 2
    return train("Cartpole-Balance", env_cfg, rl_cfg, tmp_path_factory.mktemp("runs")).run.path


def open_run(run: Path, **kwargs) -> LiveLab:
    """A lab of the run's scene, which waits for steps."""
    world = world_from_file(run / "scene" / "scene.xml", by_prefix=True)
    lab = LiveLab(world, LabCfg(mode="direct", **kwargs))
    lab.run_policy(run / "policy.onnx")
    return lab


def plain_states(run: Path, periods: int) -> tuple[list[bytes], int]:
    """States after each control period as `play --onnx` makes them, and its physics steps."""
    from manyworlds.rl import OnnxPolicy

    model = mujoco.MjModel.from_xml_path(str(run / "scene" / "scene.xml"))
    policy, data = OnnxPolicy(run / "policy.onnx", model), mujoco.MjData(model)
    policy.reset(data)
    states = []
    for _ in range(periods):
        policy.step(data)
        states.append(np.concatenate([data.qpos, data.qvel, data.ctrl]).tobytes())
    return states, policy.description["decimation"]


def state_of(lab: LiveLab) -> bytes:
    """Positions, velocities and controls now."""
    snapshot = lab.snapshot
    return np.concatenate([snapshot.qpos, snapshot.qvel, snapshot.ctrl]).tobytes()


def test_a_robot_moves_as_in_plain_mujoco(run):
    """Step the lab with the policy: the states of `play --onnx` to the bit, and after a reset."""
    expected, decimation = plain_states(run, 60)
    lab = open_run(run)
    for _ in range(2):
        states = []
        for _ in expected:
            lab.step(decimation)
            states.append(state_of(lab))
        assert states == expected
        lab.reset()
    lab.stop()


def test_pauses_do_not_matter(run):
    """Let iterations go by while the world is paused: the same states."""
    expected, decimation = plain_states(run, 10)
    lab = open_run(run)
    lab.pause()
    for state in expected:
        for _ in range(decimation):
            lab.loop.iterate_once()
            lab.step()
        assert state_of(lab) == state
    lab.stop()


def test_others_may_take_the_robot(run):
    """Take the robot from the policy and give it back: the policy restarts."""
    lab = open_run(run)
    robot = lab["cartpole"]
    assert robot.owner == "policy"
    lab.step(7)
    robot.take("panel")
    robot.write("panel", [0.25])
    assert lab.step(3).ctrl.tolist() == [0.25]
    robot.take("policy")
    assert lab.step().ctrl.tolist() != [0.25]
    lab.stop()


def test_one_policy_controls_two_robots(run):
    """Open two robots, control both by the policy: each moves as the one of training alone."""
    expected, decimation = plain_states(run, 20)
    cfg = load_env_cfg("Cartpole-Balance")
    other = cfg.scene.entities["other"] = copy.deepcopy(cfg.scene.entities["cartpole"])
    other.init_state.pos = (0.0, 5.0, 0.0)
    world = world_from_scene(cfg.scene, cfg.sim.mujoco)
    lab = LiveLab(world, LabCfg(mode="direct"))
    laws = [lab.run_policy(run / "policy.onnx", name) for name in world.robots]
    assert [law.policy.actuator_names for law in laws] == [["cartpole/slider"], ["other/slider"]]
    for state in expected:
        lab.step(decimation)
        alone = np.frombuffer(state)[:4].reshape(2, 2)  # positions, then velocities
        snapshot = lab.snapshot
        for robot in range(2):
            own = slice(2 * robot, 2 * robot + 2)
            np.testing.assert_allclose(snapshot.qpos[own], alone[0], atol=1e-9)
            np.testing.assert_allclose(snapshot.qvel[own], alone[1], atol=1e-9)
    lab.stop()


def test_robots_that_do_not_fit_are_refused(run):
    """Load the policy into other models: the message says all that is missing or too much."""
    path = run / "scene" / "scene.xml"
    text = path.read_text()
    renamed = run / "scene" / "renamed.xml"
    renamed.write_text(text.replace("cartpole/hinge_1", "cartpole/elbow"))
    lab = LiveLab(world_from_file(renamed, by_prefix=True))
    with pytest.raises(ValueError, match=r"The model lacks .*joints? cartpole/hinge"):
        lab.run_policy(run / "policy.onnx")
    lab.stop()
    spec = mujoco.MjSpec.from_file(str(path))
    spec.add_actuator(
        name="cartpole/extra", target="cartpole/slider", trntype=mujoco.mjtTrn.mjTRN_JOINT
    )
    world = world_from_spec(spec)
    world.robots = {"cartpole": "cartpole/"}
    lab = LiveLab(world)
    with pytest.raises(
        ValueError, match="the robot 'cartpole': it does not control cartpole/extra"
    ):
        lab.run_policy(run / "policy.onnx")
    with pytest.raises(KeyError, match="no robot 'dog'"):
        lab.run_policy(run / "policy.onnx", "dog")
    lab.stop()


def test_a_saved_state_holds_what_the_policy_remembers(tmp_path):
    """Save anywhere in a control period of a recurrent policy that sees the past: the same steps.

    They are the same from memory, from disk in another lab, and after a replay.
    """
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", "lstm"
    rl_cfg.actor.rnn_hidden_dim, rl_cfg.actor.rnn_num_layers = 8, 1
    group = env_cfg.observations["actor"]
    group.history_length = 3
    next(iter(group.terms.values())).delay_min_lag = 2
    next(iter(group.terms.values())).delay_max_lag = 2
    (actuator,) = env_cfg.scene.entities["cartpole"].articulation.actuators
    actuator.delay_min_lag = actuator.delay_max_lag = 3
    rl_cfg.max_iterations = 1
    env_cfg.scene.num_envs = 4
    folder = train("Cartpole-Balance", env_cfg, rl_cfg, tmp_path).run.path
    lab = open_run(folder, recorder=RecorderCfg(to_file=False))
    for steps in (1, 2, 3, 7):
        lab.recorder.start()
        lab.step(steps)
        lab.recorder.stop()
        lab.states.save("here")
        path = lab.states.write("here", tmp_path)
        expected = steps_of(lab)
        lab.states.restore("here")
        assert steps_of(lab) == expected
        lab.states.restore("here")
        lab.replay.start()
        lab.step(4)
        lab.replay.stop()
        assert steps_of(lab) == expected
        other = open_run(folder)
        other.step(5)
        other.states.read(path)
        other.states.restore("here")
        assert steps_of(other) == expected
        other.stop()
    lab.stop()


def steps_of(lab: LiveLab) -> list[bytes]:
    """States after each of twenty steps."""
    states = []
    for _ in range(20):
        lab.step()
        states.append(state_of(lab))
    return states


def test_a_checkpoint_moves_as_its_export(run):
    """Take the last checkpoint instead of the exported policy: the same states, to the bit."""
    expected, decimation = plain_states(run, 20)
    lab = open_run(run)
    lab.run_policy(sorted(run.glob("model_*.pt"))[-1])
    for state in expected:
        lab.step(decimation)
        assert state_of(lab) == state
    lab.stop()


def test_checkpoints_need_their_run(run, tmp_path):
    """Name a policy that is not there, and a checkpoint that lies elsewhere."""
    lab = open_run(run)
    with pytest.raises(FileNotFoundError, match=r"no policy '.*none\.onnx': name an \.onnx or"):
        lab.run_policy(tmp_path / "none.onnx")
    lost = tmp_path / "model_1.pt"
    lost.write_bytes((sorted(run.glob("model_*.pt"))[-1]).read_bytes())
    with pytest.raises(ValueError, match=r"model_1\.pt' is in no run folder"):
        lab.run_policy(lost)
    lab.stop()


def test_timestep_and_gains_are_those_of_training(tmp_path):
    """Open a scene with another timestep, other gains and options: it is told, and taken over."""
    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.entities["cartpole"].articulation.actuators = (
        BuiltinPositionActuatorCfg(target_names_expr=("slider",), stiffness=20.0, damping=2.0),
    )
    env_cfg.actions = {
        "position": mdp.JointPositionActionCfg(
            entity_name="cartpole", actuator_names=("slider",), scale=0.5
        )
    }
    env_cfg.scene.num_envs, rl_cfg.max_iterations = 4, 1
    folder = train("Cartpole-Balance", env_cfg, rl_cfg, tmp_path).run.path
    expected, decimation = plain_states(folder, 20)
    spec = mujoco.MjSpec.from_file(str(folder / "scene" / "scene.xml"))
    iterations = spec.option.iterations
    spec.option.timestep, spec.option.iterations = 0.002, iterations + 7
    (actuator,) = spec.actuators
    actuator.set_to_position(kp=35.0, kv=2.0)
    for adopt in (False, True):
        world = world_from_spec(spec)
        world.robots = {"cartpole": "cartpole/"}
        lab = LiveLab(world, LabCfg(mode="direct", options={"iterations": iterations}))
        law = lab.run_policy(folder / "policy.onnx", adopt=adopt)
        assert law.differences == [
            "timestep: 0.002 s, in training 0.01 s",
            "stiffness of cartpole/slider: 35, in training 20",
        ]
        states = []
        for _ in expected:
            lab.step(decimation)
            states.append(state_of(lab))
        assert (states == expected) is adopt
        spec.worldbody.add_site(name=f"mark {adopt}")
        fresh = world_from_spec(spec)
        fresh.robots = world.robots
        assert not lab.rebuild(fresh).dropped_laws
        assert fresh.model.opt.timestep == 0.01
        assert fresh.model.actuator_gainprm[0, 0] == (20.0 if adopt else 35.0)
        lab.stop()
    lab = LiveLab(world_from_spec(spec, "cartpole"))
    law = lab.run_policy(folder / "policy.onnx")
    assert law.differences[2:] == [f"option iterations: {iterations + 7}, in training {iterations}"]
    lab.stop()


def test_the_command_opens_a_run(run):
    """Open the run folder as the command does, and a world of its batch."""
    from manyworlds.cli.lab import LabOptions, open_lab

    lab = open_lab(LabOptions(target=str(run), paused=True))
    assert lab["cartpole"].owner == "policy" and list(lab.world.robots) == ["cartpole"]
    lab.stop()
    lab = open_lab(LabOptions(target=str(run), world=2))
    lab.loop.mode = "direct"
    before = lab.snapshot.qpos.copy()
    lab.step(20)
    assert lab["cartpole"].owner == "policy" and (lab.snapshot.qpos != before).any()
    lab.stop()
    checkpoint = sorted(run.glob("model_*.pt"))[0]
    lab = open_lab(LabOptions(target=str(run / "policy.onnx"), paused=True))
    assert lab["cartpole"].owner == "policy"
    lab.stop()
    lab = open_lab(LabOptions(target=str(checkpoint), paused=True))
    assert lab["cartpole"].controller.policy.path == checkpoint
    lab.stop()


def test_a_verb_runs_a_policy(run):
    """Run a policy by its verb: the same states as by the method; the reply says its commands."""
    expected, decimation = plain_states(run, 20)
    world = world_from_file(run / "scene" / "scene.xml", by_prefix=True)
    lab = LiveLab(world, LabCfg(mode="direct"))
    reply = lab.call("run_policy", path=str(run / "policy.onnx"))
    assert reply["differences"] == [] and reply["commands"] == {}
    seen = []
    for _ in range(20):
        lab.step(decimation)
        seen.append(state_of(lab))
    assert seen == expected
    law = lab["cartpole"].controller
    lab.source = lambda: LiveLab(world_from_file(run / "scene" / "scene.xml", by_prefix=True))
    lab.step(3)
    assert not lab.call("reload")["notes"]
    assert lab["cartpole"].controller is not law and lab["cartpole"].owner == "policy"
    lab.step(decimation)
    lab.stop()


def test_the_robot_that_a_policy_drives_is_edited(run):
    """Add a prop: the policy goes on; remove its robot: a note; undo: its state comes back."""
    lab, plain = open_run(run), open_run(run)
    (robot,) = list(lab.controls)
    for _ in range(2):
        lab.step(10)
        plain.step(10)
        np.testing.assert_allclose(
            lab.snapshot.qpos[: plain.model.nq], plain.snapshot.qpos, atol=1e-9
        )
        lab.scene.add("cartpole", pos=(0.0, 50.0, 0.0))
    assert not lab.rebuild_notes and robot.owner == "policy"
    before = lab.snapshot.qpos[: plain.model.nq].copy()
    lab.scene.remove(robot.name)
    assert lab.scene.notes[0] == f"the robot '{robot.name}' is gone, and what controlled it ended"
    assert np.isfinite(lab.step(10).qpos).all() and not lab.loop.fault
    lab.scene.undo()
    np.testing.assert_array_equal(lab.snapshot.qpos[: plain.model.nq], before)
    lab.run_policy(run / "policy.onnx", robot=robot.name)
    assert np.isfinite(lab.step(10).qpos).all() and lab[robot.name].owner == "policy"
    for each in (lab, plain):
        each.stop()
