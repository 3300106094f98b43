"""The runner: checkpoints old and new, state of all terms, and settings."""

import copy
import json

import onnx
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import MetricsTermCfg, RewardTermCfg
from manyworlds.managers.manager_base import ManagerTermBase
from manyworlds.rl import OnPolicyRunner, RslRlVecEnvWrapper
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.config import runner_settings
from manyworlds.rl.training import train

TASK = "Cartpole-Swingup"


class Drift(ManagerTermBase):
    """A reward that grows with every call: training depends on what it remembers."""

    state_attributes = ("calls",)

    def __init__(self, cfg, env) -> None:
        super().__init__(env)
        self.calls = torch.zeros(env.num_envs, device=env.device)

    def __call__(self, env) -> torch.Tensor:
        """Count."""
        self.calls += 1
        return self.calls.clone()


def make_runner(env_cfg, rl_cfg) -> OnPolicyRunner:
    """Make a runner of a fresh environment."""
    return OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)


def saved(runner, path) -> dict:
    """Save and read a checkpoint."""
    runner.save(path)
    return load_checkpoint(path)


@pytest.mark.slow
def test_terms_with_state_are_resumed(env_cfg, rl_cfg, log_root):
    """Go on bit for bit where a manager's term remembers; go on with the curve, too."""
    env_cfg.rewards["drift"] = RewardTermCfg(func=Drift, weight=1.0)
    whole = train(TASK, env_cfg, rl_cfg, log_root)
    rl_cfg.max_iterations = 2
    half = train(TASK, env_cfg, rl_cfg, log_root)
    rl_cfg.max_iterations = 4
    resumed = train(TASK, env_cfg, rl_cfg, log_root, resume=half.checkpoint)
    new, old = load_checkpoint(resumed.checkpoint), load_checkpoint(whole.checkpoint)
    calls = [
        c["infos"]["env_state"]["reward_manager"]["terms"]["drift"]["calls"] for c in (new, old)
    ]
    assert torch.equal(*calls) and calls[0][0] >= 32
    for name, value in old["critic_state_dict"].items():
        assert torch.equal(value, new["critic_state_dict"][name]), name
    lines = (resumed.run.path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2, 3, 4]


@pytest.mark.slow_on_warp
def test_a_run_goes_on_from_the_middle_with_the_curve_up_to_there(env_cfg, rl_cfg, log_root):
    """Leave out what the earlier run did after the checkpoint."""
    first = train(TASK, env_cfg, rl_cfg, log_root)
    rl_cfg.max_iterations = 3
    resumed = train(TASK, env_cfg, rl_cfg, log_root, resume=first.run.path / "model_0.pt")
    assert [record.iteration for record in resumed.records] == [1, 2, 3]
    assert resumed.records[0] == first.records[0]


def test_checkpoints_without_worlds_load_with_a_warning(env_cfg, rl_cfg, tmp_path):
    """Take networks, iteration and step counter from a checkpoint of the reference's kind."""
    runner = make_runner(env_cfg, rl_cfg)
    checkpoint = saved(runner, tmp_path / "new.pt")
    checkpoint["iter"] = 6
    checkpoint["infos"] = {"env_state": {"common_step_counter": 144}}
    torch.save(checkpoint, tmp_path / "old.pt")
    fresh = make_runner(env_cfg, rl_cfg)
    with pytest.warns(UserWarning, match=r"old.pt' has no worlds for process 0"):
        fresh.load(tmp_path / "old.pt")
    assert fresh.current_learning_iteration == 7
    assert fresh.env.unwrapped.common_step_counter == 144
    fresh.load(tmp_path / "old.pt", load_cfg={"actor": True})


def test_names_of_older_rsl_rl_are_understood(env_cfg, rl_cfg, tmp_path):
    """Split one state dict into two networks, and rename the standard deviation."""
    rl_cfg.actor.obs_normalization = rl_cfg.critic.obs_normalization = True
    runner = make_runner(env_cfg, rl_cfg)
    checkpoint = saved(runner, tmp_path / "new.pt")
    both = {}
    for network in ("actor", "critic"):
        for name, value in checkpoint[f"{network}_state_dict"].items():
            old = name.replace("mlp.", f"{network}.").replace("obs_n", f"{network}_obs_n")
            both[old.replace("distribution.std_param", "std")] = value
    assert "std" in both and "actor.0.weight" in both and "critic_obs_normalizer._mean" in both
    torch.save({"model_state_dict": both, "iter": 3, "infos": None}, tmp_path / "old.pt")
    migrated = load_checkpoint(tmp_path / "old.pt")
    for network in ("actor_state_dict", "critic_state_dict"):
        assert set(migrated[network]) == set(checkpoint[network])
    runner.load(tmp_path / "old.pt", load_cfg={"actor": True, "critic": True})


def test_settings_may_be_a_dict_and_stay_as_they_are(env_cfg, rl_cfg, tmp_path):
    """Give rsl_rl a copy, which it changes."""
    settings = runner_settings(rl_cfg)
    before = copy.deepcopy(settings)
    runner = make_runner(env_cfg, settings)
    runner.learn(1)
    assert settings == before
    runner.export_policy_to_onnx(tmp_path, "mine.onnx")
    keys = {entry.key for entry in onnx.load(str(tmp_path / "mine.onnx")).metadata_props}
    assert {"manyworlds", "run_path", "joint_names", "action_scale"} <= keys
    folder, name, path = runner._get_export_paths(tmp_path / "model_3.pt")
    assert (folder, name, path) == (tmp_path, f"{tmp_path.name}.onnx", tmp_path / name)


def test_a_step_without_finite_episodes_does_not_hide_the_others(env_cfg, rl_cfg):
    """Log the mean over the steps that have a value, and none where no step has one."""
    steps = []

    def sometimes(env) -> torch.Tensor:
        steps.append(1)
        return torch.full((4,), 3.0 if len(steps) < 12 else torch.nan)

    env_cfg.episode_length_s = 0.2
    env_cfg.metrics = {
        "sometimes": MetricsTermCfg(func=sometimes, reduce="last"),
        "never": MetricsTermCfg(func=lambda env: torch.full((4,), torch.nan)),
    }
    rl_cfg.num_steps_per_env = 16
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    records = []
    runner.on_iteration(records.append)
    runner.learn(1)
    scalars = records[0].scalars
    assert scalars["Episode_Metrics/sometimes"] == 3.0
    assert scalars["Episode_Metrics/never"] is None
    assert scalars["Status/nan_metric"] == 4.0
