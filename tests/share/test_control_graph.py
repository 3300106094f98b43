"""Control graphs against plain playback: the same controls from the same state."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import (
    BuiltinPositionActuatorCfg,
    DcMotorActuatorCfg,
    IdealPdActuatorCfg,
)
from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.managers import ObservationTermCfg
from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls

pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")
pytest.importorskip("rsl_rl", reason="learning needs the extra 'train'")

from manyworlds.envs.buckets import bucket_cfg
from manyworlds.rl import OnnxPolicy, OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.exporter_utils import export_policy, export_scene
from manyworlds.share import ControlGraph
from tests.envs.bucket_tasks import chains_cfg
from tests.share.plain_driver import GraphDriver

TASKS = [
    "Cartpole-Balance",
    "Reach",
    "Velocity-Flat-Quadruped",
    "Velocity-Flat-Humanoid",
    "Lift-Cube-Arm",
    "Push-Variants",
    pytest.param("Velocity-Rough-Quadruped", marks=pytest.mark.slow),
    pytest.param("Tracking-Flat-Humanoid", marks=pytest.mark.slow),
]
COMMANDS = {"twist": (0.6, -0.2, 0.4), "lift_height": (0.4, 0.1, 0.3), "goal": (0.25, -0.1)}


def exported(env_cfg, rl_cfg, folder: Path, runner_cls: Any = None) -> OnnxPolicy:
    """Export a policy with random weights; return it in plain MuJoCo, in float64."""
    env_cfg.scene.num_envs = 1
    env_cfg.seed = 3
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    make = runner_cls or OnPolicyRunner
    runner = make(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
    # As after training, so that the normalizer has an effect.
    for layer in runner.alg.get_policy().modules():
        if hasattr(layer, "_mean"):
            layer._mean[:] = 0.1
            layer._var[:] = 0.5
            layer._std[:] = 0.5**0.5
    path = export_policy(runner, folder / "policy.onnx")
    scene = export_scene(env, folder / "scene")
    env.close()
    model = mujoco.MjModel.from_xml_path(str(scene / "scene.xml"))
    return OnnxPolicy(path, model, double=True)


def exported_task(task: str, folder: Path) -> OnnxPolicy:
    """Export a policy of a task with random weights."""
    policy = exported(load_env_cfg(task), load_rl_cfg(task), folder, load_runner_cls(task))
    for name, value in policy.commands.items():
        value[:] = COMMANDS.get(name, value)
    return policy


def graph_of(policy: OnnxPolicy) -> tuple[GraphDriver, Any]:
    """Return a program that runs the policy's control graph, and how to run it."""
    graph = ControlGraph(policy)
    about = graph.add()
    driver = GraphDriver(policy.model, graph.finished().SerializeToString(), about)
    for name, values in driver.commands.items():
        values[:] = policy.commands[name]
    return driver, about


def partings(policy: OnnxPolicy, steps: int) -> tuple[float, float]:
    """Let plain playback and the graph run from the start; return how far they part and move."""
    driver, _ = graph_of(policy)
    plain = mujoco.MjData(policy.model)
    shared = mujoco.MjData(policy.model)
    policy.reset(plain)
    mujoco.mj_copyData(shared, policy.model, plain)
    start = plain.qpos.copy()
    apart = 0.0
    for _ in range(steps):
        policy.step(plain)
        driver.step(shared, policy.description["decimation"])
        apart = max(apart, np.abs(plain.qpos - shared.qpos).max())
        apart = max(apart, np.abs(plain.ctrl - shared.ctrl).max())
    return apart, float(np.abs(plain.qpos - start).max())


@pytest.mark.parametrize("task", TASKS)
def test_tasks_move_as_in_plain_playback(tmp_path, task):
    """Follow plain playback for 200 control steps, with commands and contacts."""
    apart, moved = partings(exported_task(task, tmp_path), steps=200)
    assert apart < 1e-9
    assert moved > 0.02


@pytest.mark.parametrize("task", ["Velocity-Flat-Quadruped", "Lift-Cube-Arm", "Push-Variants"])
def test_terms_agree_in_random_states(tmp_path, task):
    """Compute the action in states far from the start as plain playback does."""
    policy = exported_task(task, tmp_path)
    driver, _ = graph_of(policy)
    data = mujoco.MjData(policy.model)
    random = np.random.default_rng(0)
    actions = []
    for _ in range(25):
        policy.reset(data)
        driver.reset(None)
        data.qpos[:] += random.normal(scale=0.5, size=data.qpos.shape)
        data.qvel[:] = random.normal(size=data.qvel.shape)
        mujoco.mj_step1(policy.model, data)
        policy.begin_period(data)
        policy.apply(data)
        expected = data.ctrl.copy()
        driver.control(data)
        np.testing.assert_allclose(data.ctrl, expected, rtol=1e-12, atol=1e-12)
        actions.append(expected)
    assert np.std(actions, axis=0).max() > 1e-3


@pytest.mark.slow_on_warp
@pytest.mark.parametrize(
    "actuator",
    [
        BuiltinPositionActuatorCfg(
            target_names_expr=("slider",),
            stiffness=20.0,
            damping=2.0,
            delay_min_lag=2,
            delay_max_lag=4,
        ),
        IdealPdActuatorCfg(target_names_expr=("slider",), stiffness=20.0, damping=2.0),
        DcMotorActuatorCfg(
            target_names_expr=("slider",),
            stiffness=20.0,
            damping=2.0,
            effort_limit=3.0,
            saturation_effort=5.0,
            velocity_limit=2.0,
            delay_min_lag=1,
            delay_max_lag=7,
        ),
    ],
    ids=["late position servo", "ideal", "late dc motor"],
)
@pytest.mark.parametrize("kind", ["JointPositionActionCfg", "RelativeJointPositionActionCfg"])
def test_controls_follow_the_physics(env_cfg, rl_cfg, tmp_path, actuator, kind):
    """Delay targets and evaluate laws before every physics step, and infer once per period."""
    env_cfg.scene.entities["cartpole"].articulation.actuators = (actuator,)
    cfg = getattr(mdp, kind)(entity_name="cartpole", actuator_names=("slider",), scale=2.0)
    if kind == "JointPositionActionCfg":
        cfg.clip = {"slider": (-0.5, 0.5)}
        cfg.offset, cfg.use_default_offset = 0.2, False
    env_cfg.actions = {"position": cfg}
    group = env_cfg.observations["actor"]
    group.terms["action"] = ObservationTermCfg(func=mdp.last_action, clip=(-0.4, 0.4), scale=2.0)
    group.terms["joint_vel"].delay_min_lag = group.terms["joint_vel"].delay_max_lag = 2
    group.terms["pole_angle"].history_length = 3
    rl_cfg.clip_actions = 0.3
    policy = exported(env_cfg, rl_cfg, tmp_path)
    _, about = graph_of(policy)
    assert about["calls"] == "substep"
    apart, moved = partings(policy, steps=60)
    assert apart < 1e-9
    assert moved > 1e-3


@pytest.mark.slow_on_warp
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_policies_carry_their_state(env_cfg, rl_cfg, tmp_path, kind):
    """Pass the hidden state from period to period."""
    rl_cfg.actor.class_name, rl_cfg.actor.rnn_type = "RNNModel", kind
    rl_cfg.actor.rnn_hidden_dim, rl_cfg.actor.rnn_num_layers = 8, 2
    policy = exported(env_cfg, rl_cfg, tmp_path)
    apart, _ = partings(policy, steps=40)
    assert apart < 1e-9
    assert max(abs(value).max() for value in policy._hidden.values()) > 1e-3


def _mystery(env) -> torch.Tensor:
    return torch.ones(env.num_envs, 2)


@pytest.mark.slow_on_warp
def test_all_terms_without_a_form_are_named(env_cfg, rl_cfg, tmp_path):
    """Name observation and remedy in one sentence, and images for what they are."""
    env_cfg.observations["actor"].terms["mystery"] = ObservationTermCfg(func=_mystery)
    env_cfg.observations["actor"].terms["riddle"] = ObservationTermCfg(func=_mystery)
    fns = {name: lambda policy, data, params: [1.0, 1.0] for name in ("mystery", "riddle")}
    with pytest.raises(ValueError, match="'mystery'"):
        exported(env_cfg, rl_cfg, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
    policy = OnnxPolicy(tmp_path / "policy.onnx", model, observation_fns=fns)
    wanted = r"without a form in ONNX: .*'mystery' .*'riddle' .*ONNX_OBSERVATION_FNS"
    with pytest.raises(ValueError, match=wanted):
        ControlGraph(policy)
    policy.description["policy"]["inputs"]["camera"] = ["camera"]
    image = {"function": "manyworlds.envs.mdp.observations:camera", "shape": [3, 8, 8]}
    policy.description["observations"]["camera"] = {"concatenate": True, "terms": {"camera": image}}
    with pytest.raises(ValueError, match=r"observes images \(camera\)"):
        ControlGraph(policy)


def test_padded_terms_are_named(tmp_path, rl_cfg):
    """Say that a policy that was trained in buckets of robots cannot be shared."""
    cfg = bucket_cfg(chains_cfg(), "three", num_envs=1)
    del cfg.events["mass"]
    exported(cfg, rl_cfg, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene" / "scene.xml"))
    policy = OnnxPolicy(tmp_path / "policy.onnx", model)
    padded = r"'pos' \(padded among buckets\).*action 'joints' \(padded among buckets\)"
    with pytest.raises(ValueError, match=padded):
        ControlGraph(policy)
