"""Mirror symmetry in training, checkpoints, exported policies and playback."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.cli.policies import load_run_policy
from manyworlds.entity.mirror import mirror_table
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.lab import LabCfg, LiveLab, world_from_file
from manyworlds.managers import ObservationGroupCfg, ObservationTermCfg
from manyworlds.managers.symmetry import Reflection
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.config import SYMMETRIC_MLP, RslRlOnPolicyRunnerCfg, runner_settings
from manyworlds.rl.evaluation import evaluate
from manyworlds.rl.exporter_utils import export_policy, export_scene
from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.symmetry import SymmetricLinear, mirror_batch, mirror_loss
from manyworlds.rl.training import train
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.tasks import load_env_cfg, load_rl_cfg

TASK = "Velocity-Flat-Humanoid"
onnxruntime = pytest.importorskip("onnxruntime", reason="running policies needs the extra 'train'")


@pytest.fixture
def env_cfg() -> Any:
    """Configure a few worlds of a task."""
    cfg = load_env_cfg(TASK)
    cfg.scene.num_envs = 4
    return cfg


@pytest.fixture
def rl_cfg() -> Any:
    """Configure short iterations with small networks and normalized observations."""
    cfg: Any = load_rl_cfg(TASK)
    cfg.max_iterations, cfg.num_steps_per_env, cfg.save_interval = 2, 4, 1
    cfg.actor.hidden_dims = cfg.critic.hidden_dims = (16, 16)
    assert cfg.actor.obs_normalization
    return cfg


def make_runner(env_cfg: Any, rl_cfg: Any) -> OnPolicyRunner:
    """Make a runner of a fresh environment."""
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg, device="cpu")), rl_cfg)


def asymmetry(runner: OnPolicyRunner, obs: Any) -> float:
    """Return the largest deviation of actions for mirrored observations."""
    both, _ = mirror_batch(runner.env, obs)
    actions = runner.get_inference_policy()(both)
    _, mirrored = mirror_batch(runner.env, actions=actions[: len(obs)])
    assert mirrored is not None
    return float((actions - mirrored)[len(obs) :].abs().max())


def test_symmetry_is_off_unless_it_is_used() -> None:
    """The settings of rsl_rl have no extension by default, whose loss would be computed."""
    assert "symmetry_cfg" not in runner_settings(RslRlOnPolicyRunnerCfg())["algorithm"]
    cfg = RslRlOnPolicyRunnerCfg()
    cfg.algorithm.symmetry_cfg.use_mirror_loss = True
    assert runner_settings(cfg)["algorithm"]["symmetry_cfg"]["mirror_loss_coeff"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("use", ["use_data_augmentation", "use_mirror_loss", "network"])
def test_training_is_resumed_bit_for_bit(
    env_cfg: Any, rl_cfg: Any, tmp_path: Any, use: str
) -> None:
    """A run that stops and goes on ends with the same networks, which symmetry changes."""

    def configure(iterations: int, symmetric: bool = True) -> Any:
        rl_cfg.max_iterations = iterations
        if use != "network":
            setattr(rl_cfg.algorithm.symmetry_cfg, use, symmetric)
        else:
            for network in (rl_cfg.actor, rl_cfg.critic):
                network.class_name = SYMMETRIC_MLP if symmetric else "MLPModel"
        return rl_cfg

    whole = train(TASK, env_cfg, configure(2), tmp_path)
    half = train(TASK, env_cfg, configure(1), tmp_path)
    resumed = train(TASK, env_cfg, configure(2), tmp_path, resume=half.checkpoint)
    plain = train(TASK, env_cfg, configure(2, symmetric=False), tmp_path)
    whole, resumed, plain = (load_checkpoint(r.checkpoint) for r in (whole, resumed, plain))
    for network in ("actor_state_dict", "critic_state_dict"):
        for name, value in whole[network].items():
            assert torch.equal(value, resumed[network][name]), name
    assert not torch.equal(
        list(whole["actor_state_dict"].values())[-1], list(plain["actor_state_dict"].values())[-1]
    )


def test_mirror_loss_makes_a_policy_more_symmetric(env_cfg: Any, rl_cfg: Any) -> None:
    """For the same observations, actions deviate less than before, and without the loss not."""
    ratios = []
    for rl_cfg.algorithm.symmetry_cfg.use_mirror_loss in (True, False):
        rl_cfg.algorithm.symmetry_cfg.mirror_loss_coeff = 100.0
        rl_cfg.algorithm.symmetry_cfg.use_data_augmentation = True
        rl_cfg.algorithm.schedule, rl_cfg.actor.obs_normalization = "fixed", False
        env_cfg.seed = 0
        runner = make_runner(env_cfg, rl_cfg)
        obs = runner.env.get_observations()
        before = asymmetry(runner, obs)
        runner.learn(3)
        ratios.append(asymmetry(runner, obs) / before)
    assert ratios[0] < 0.7 < 0.9 < ratios[1]


def test_a_symmetric_network_stays_symmetric(env_cfg: Any, rl_cfg: Any, tmp_path: Any) -> None:
    """Actions, spread, values and statistics are symmetric after training, and once loaded."""
    rl_cfg.actor.class_name = rl_cfg.critic.class_name = SYMMETRIC_MLP
    runner = make_runner(env_cfg, rl_cfg)
    runner.learn(2)
    assert asymmetry(runner, runner.env.get_observations()) < 1e-6
    algorithm: Any = runner.alg
    critic, actor = algorithm.critic, algorithm.actor
    both, _ = mirror_batch(runner.env, runner.env.get_observations())
    first, second = critic(both).split(env_cfg.scene.num_envs)
    torch.testing.assert_close(first, second)
    actor(both, stochastic_output=True)
    index = actor.mlp[-1].outputs.index
    assert torch.equal(actor.output_std, actor.output_std[:, index])
    assert actor.output_std.std() > 0
    runner.save(tmp_path / "model_0.pt")
    other = make_runner(env_cfg, rl_cfg)
    other.load(tmp_path / "model_0.pt", load_cfg={"actor": True})
    obs = runner.env.get_observations()
    assert torch.equal(*(r.get_inference_policy()(obs) for r in (runner, other)))
    assert "mirror" not in runner.cfg["actor"]


def test_exported_policies_are_symmetric_in_plain_mujoco(
    env_cfg: Any, rl_cfg: Any, tmp_path: Any
) -> None:
    """The ONNX file acts as the environment's policy; a mirrored state has mirrored actions."""
    rl_cfg.actor.class_name = SYMMETRIC_MLP
    env_cfg.scene.num_envs = 1
    runner = make_runner(env_cfg, rl_cfg)
    runner.learn(1)
    path = export_policy(runner, tmp_path / "policy.onnx")
    scene = export_scene(runner.env.unwrapped, tmp_path / "scene")
    model = mujoco.MjModel.from_xml_path(str(scene / "scene.xml"))
    mirror = runner.env.mirror
    assert mirror is not None
    table = mirror.table("robot")
    state = runner.env.unwrapped.sim.data
    rng = np.random.default_rng(0)
    qpos, qvel = state.qpos[0].double().numpy(), 0.2 * rng.standard_normal(model.nv)
    actions = []
    for q, v in ((qpos, qvel), (table.mirror_qpos(qpos), table.mirror_qvel(qvel))):
        data = mujoco.MjData(model)
        policy = OnnxPolicy(path, model)
        policy.reset(data)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_step1(model, data)
        actions.append(torch.tensor(policy.step(data))[None])
    torch.testing.assert_close(mirror.action(actions[0]), actions[1], atol=1e-5, rtol=1e-5)
    assert (actions[0] - actions[1]).abs().max() > 1e-3


@pytest.mark.parametrize("use", ["network", "use_data_augmentation"])
def test_evaluation_and_onnx_run_the_policy_of_a_symmetric_run(
    env_cfg: Any, rl_cfg: Any, tmp_path: Any, use: str
) -> None:
    """Load the network of the run, and compute the same actions of a batch from both files."""
    if use == "network":
        rl_cfg.actor.class_name = rl_cfg.critic.class_name = SYMMETRIC_MLP
    else:
        rl_cfg.algorithm.symmetry_cfg.use_data_augmentation = True
    result = train(TASK, env_cfg, rl_cfg, tmp_path)
    env_cfg.episode_length_s = 0.2
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    policy = load_run_policy(env, TASK, result.run, result.checkpoint)
    assert evaluate(env, policy).episodes == 4
    policy_obs: Any = env.observation_manager.compute()
    obs = torch.randn(64, len(policy_obs["actor"][0]))
    session = onnxruntime.InferenceSession(result.run.path / "policy.onnx")
    with torch.inference_mode():
        expected = policy({"actor": obs})
    (actions,) = session.run(None, {"obs": obs.numpy()})
    assert expected.std() > 1e-3
    torch.testing.assert_close(torch.tensor(actions), expected, atol=1e-5, rtol=1e-4)
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["policy.onnx", "model_0.pt"])
def test_the_lab_runs_symmetric_policies(
    env_cfg: Any, rl_cfg: Any, tmp_path: Any, policy: str
) -> None:
    """A symmetric robot that is told to stand moves symmetrically, and with the MLP it does not."""
    deviations = []
    for rl_cfg.actor.class_name in (SYMMETRIC_MLP, "MLPModel"):
        rl_cfg.max_iterations = 1
        run = train(TASK, env_cfg, rl_cfg, tmp_path / rl_cfg.actor.class_name[:4]).run.path
        world = world_from_file(run / "scene" / "scene.xml", by_prefix=True)
        lab = LiveLab(world, LabCfg(mode="direct"))
        law = lab.run_policy(run / policy)
        table = mirror_table(mujoco.MjModel.from_xml_path(str(run / "scene" / "scene.xml")))
        for _ in range(10):
            lab.step(law.policy.description["decimation"])
        qpos = np.asarray(lab.snapshot.qpos)
        deviations.append(np.abs(table.mirror_qpos(qpos) - qpos).max())
        lab.stop()
    assert deviations[0] < 1e-4 < 1e-2 < deviations[1]


def test_terms_without_a_mirror_image_raise_at_the_start(env_cfg: Any, rl_cfg: Any) -> None:
    """Only the groups that networks observe need mirror images."""

    def undeclared(env: Any) -> torch.Tensor:
        return torch.zeros(env.num_envs, 1)

    own = ObservationGroupCfg(terms={"term": ObservationTermCfg(func=undeclared)})
    env_cfg.observations["own"] = own
    rl_cfg.algorithm.symmetry_cfg.use_data_augmentation = True
    runner = make_runner(env_cfg, rl_cfg)
    obs = runner.env.get_observations()
    both, _ = mirror_batch(runner.env, obs)
    assert both is not None and torch.equal(both["own"], obs["own"].repeat(2, 1))
    rl_cfg.obs_groups = {**rl_cfg.obs_groups, "actor": ("actor", "own")}
    with pytest.raises(ValueError, match="'own/term' does not declare how it mirrors"):
        make_runner(env_cfg, rl_cfg)


@pytest.mark.parametrize("augments", [False, True])
def test_the_mirror_loss_is_that_of_rsl_rl_with_fewer_calls(
    env_cfg: Any, rl_cfg: Any, augments: bool
) -> None:
    """Loss and gradients are equal; outputs that the algorithm computed are not computed again."""
    rl_cfg.algorithm.symmetry_cfg.use_mirror_loss = True
    rl_cfg.algorithm.symmetry_cfg.use_data_augmentation = augments
    runner = make_runner(env_cfg, rl_cfg)
    algorithm: Any = runner.alg
    actor, symmetry = algorithm.actor, algorithm.symmetry
    calls: list[int] = []
    actor.register_forward_hook(lambda *args: calls.append(len(args[2])))
    results = []
    for compute in (functools.partial(mirror_loss, symmetry), symmetry.compute_loss):
        batch: Any = SimpleNamespace(observations=runner.env.get_observations())
        if augments:
            batch.observations, _ = mirror_batch(runner.env, batch.observations)
        actor(batch.observations, stochastic_output=True)
        calls.clear()
        loss = compute(actor, batch, env_cfg.scene.num_envs)
        results.append((loss, torch.autograd.grad(loss, [*actor.mlp.parameters()]), sum(calls)))
    (loss, gradients, count), (expected, wanted, most) = results
    assert float(expected.detach()) > 0.0
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradients, wanted)
    assert (count, most) == (0 if augments else 4, 8)


def test_a_symmetric_layer_starts_with_the_spread_of_a_plain_one() -> None:
    """Outputs of mirrored inputs are mirrored; weights of initialization keep their variance."""
    torch.manual_seed(0)
    plain = torch.nn.Linear(48, 128)
    inputs = Reflection.of([*range(24, 48), *range(24)], [-1.0] * 48)
    outputs = Reflection.of(range(128)[::-1], [1.0] * 128)
    layer = SymmetricLinear(plain, inputs, outputs)
    x = torch.randn(1000, 48)
    torch.testing.assert_close(layer(inputs(x)), outputs(layer(x)))
    assert abs(layer(x).std() / plain(x).std() - 1.0) < 0.05
