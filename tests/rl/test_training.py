"""Training: what a run leaves, how it resumes, and how it stops."""

import copy
import json
import os
import signal
from dataclasses import replace

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import EventTermCfg
from manyworlds.rl.checkpoint import load_checkpoint
from manyworlds.rl.run_folder import RunFolder
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.training import train
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.sim import Simulation
from manyworlds.utils.config import load_yaml, to_plain
from manyworlds.utils.devices import torch_threads

TASK = "Cartpole-Swingup"


def run(env_cfg, rl_cfg, log_root, **kwargs):
    """Train copies of the configs."""
    return train(TASK, copy.deepcopy(env_cfg), copy.deepcopy(rl_cfg), log_root, **kwargs)


def test_a_run_leaves_everything_needed_to_use_it(env_cfg, rl_cfg, log_root):
    """Leave checkpoints, policy, configuration, curve and progress, all under one folder."""
    seen = []
    result = run(env_cfg, rl_cfg, log_root, on_iteration=seen.append)
    path = result.run.path
    assert not result.interrupted and [r.iteration for r in seen] == [1, 2, 3, 4]
    assert result.checkpoint == path / "model_3.pt"
    assert [p.name for p in result.run.checkpoints()] == [f"model_{i}.pt" for i in range(4)]
    for name in ("policy.onnx", "learning_curve.png", "progress.jsonl"):
        assert (path / name).stat().st_size > 100
    assert list(path.glob("events.out.tfevents.*"))
    assert load_yaml(path / "params" / "env.yaml") == to_plain(env_cfg)
    assert load_yaml(path / "params" / "agent.yaml")["num_steps_per_env"] == 8
    assert result.run.task == TASK
    assert not [p for p in log_root.rglob(".*")]
    lines = (path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2, 3, 4]
    assert RunFolder.latest(log_root, TASK) == result.run


@pytest.mark.slow_on_warp
def test_a_run_that_fails_keeps_its_progress(env_cfg, rl_cfg, log_root):
    """Write each iteration as it ends; a run that resumes goes on from there, half lines aside."""

    def fail(record):
        if record.iteration == 3:
            raise OSError("no power")

    with pytest.raises(OSError, match="no power"):
        run(env_cfg, rl_cfg, log_root, on_iteration=fail)
    [path] = log_root.rglob("progress.jsonl")
    assert [json.loads(line)["iteration"] for line in path.open()] == [1, 2, 3]
    path.write_text(path.read_text() + '{"iteration": 4, "tot')
    resumed = run(env_cfg, rl_cfg, log_root, resume=path.parent / "model_1.pt")
    lines = (resumed.run.path / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_resumed_run_equals_one_that_never_stopped(env_cfg, rl_cfg, log_root):
    """Resume networks, optimiser, worlds and random generators bit for bit."""
    whole = load_checkpoint(run(env_cfg, rl_cfg, log_root).checkpoint)
    rl_cfg.max_iterations = 2
    half = run(env_cfg, rl_cfg, log_root)
    rl_cfg.max_iterations = 4
    resumed = load_checkpoint(run(env_cfg, rl_cfg, log_root, resume=half.checkpoint).checkpoint)
    assert resumed["iter"] == whole["iter"] == 3
    for network in ("actor_state_dict", "critic_state_dict"):
        for name, value in whole[network].items():
            assert torch.equal(value, resumed[network][name]), name
    states = [c["infos"]["env_state"]["sim"] for c in (whole, resumed)]
    assert states[0].keys() == states[1].keys() and {"state", "qpos"} & states[0].keys()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.mark.slow_on_warp
def test_a_signal_stops_between_iterations_with_a_checkpoint(env_cfg, rl_cfg, log_root):
    """Finish the iteration after SIGTERM, write a loadable checkpoint, and say so."""
    before = signal.getsignal(signal.SIGTERM)

    def stop(record) -> None:
        if record.iteration == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    rl_cfg.max_iterations, rl_cfg.save_interval = 50, 100
    result = run(env_cfg, rl_cfg, log_root, on_iteration=stop)
    assert result.interrupted and len(result.records) <= 3
    assert load_checkpoint(result.checkpoint)["iter"] == len(result.records) - 1
    assert (result.run.path / "policy.onnx").is_file()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_training_stops_when_its_time_is_up(env_cfg, rl_cfg, log_root):
    """End with a checkpoint before the limit, as a run that ended well."""
    rl_cfg.max_iterations, rl_cfg.save_interval, rl_cfg.max_minutes = 100_000, 1_000_000, 0.05
    result = run(env_cfg, rl_cfg, log_root)
    assert result.stopped and result.timed_out and not result.interrupted
    assert 1 <= len(result.records) < 100_000
    assert load_checkpoint(result.checkpoint)["iter"] == len(result.records) - 1
    whole = run(env_cfg, replace(rl_cfg, max_iterations=1), log_root)  # it is complete
    assert not (whole.stopped or whole.timed_out or whole.interrupted)
    rl_cfg.max_minutes = 0.0
    with pytest.raises(ValueError, match="max_minutes must be positive and finite, got 0.0"):
        run(env_cfg, rl_cfg, log_root)


@pytest.mark.slow_on_warp
def test_the_exported_policy_computes_the_same_actions(env_cfg, rl_cfg, log_root):
    """Compare ONNX with torch on many observations, and describe inputs and outputs."""
    onnxruntime = pytest.importorskip("onnxruntime")
    result = run(env_cfg, rl_cfg, log_root)
    session = onnxruntime.InferenceSession(str(result.run.path / "policy.onnx"))
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner = OnPolicyRunner(env, rl_cfg)
    runner.load(result.checkpoint, load_cfg={"actor": True})
    policy = runner.get_inference_policy()
    for _ in range(5):
        obs = env.get_observations()
        actions = policy(obs)
        (onnx_actions,) = session.run(None, {"obs": obs["actor"].numpy()})
        assert torch.allclose(actions, torch.from_numpy(onnx_actions), atol=1e-5)
        env.step(actions)
    meta = json.loads(session.get_modelmeta().custom_metadata_map["manyworlds"])
    assert meta["control_period_s"] == pytest.approx(0.05)
    assert meta["actions"]["effort"]["targets"] == ["cartpole/slider"]
    terms = meta["observations"]["actor"]["terms"].values()
    assert [term["shape"] for term in terms] == [[1], [2], [2]]


def test_time_outs_are_bootstrapped_unless_the_horizon_is_finite(env_cfg):
    """Report time limits to the learner, or leave them out where they are part of the task."""
    for finite in (False, True):
        env_cfg.is_finite_horizon = finite
        env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
        env.unwrapped.episode_length_buf[1] = 199
        _, _, dones, extras = env.step(torch.zeros(4, 1))
        assert dones.tolist() == [0, 1, 0, 0]
        assert ("time_outs" in extras) is not finite


@torch.inference_mode()
def test_time_outs_count_on_with_the_value_of_the_final_state(env_cfg, rl_cfg):
    """Add gamma times the critic's value of the final observation to the stored reward."""
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg))
    runner = OnPolicyRunner(env, rl_cfg)
    env.unwrapped.episode_length_buf[1] = 199
    obs = env.get_observations()
    for step in range(2):
        obs, rewards, dones, extras = env.step(runner.alg.act(obs))
        assert ("final_obs" in extras) == (step == 0)
        runner.alg.process_env_step(obs, rewards, dones, extras)
        expected = rewards.clone()
        if step == 0:
            value = runner.alg.critic(extras["final_obs"][1:2])[0, 0]
            assert value != runner.alg.critic(obs)[1, 0]
            expected[1] += runner.alg.gamma * value
        assert torch.equal(runner.alg.storage.rewards[step, :, 0], expected)


def test_actions_are_clipped_on_request(env_cfg):
    """Bound raw actions."""
    env = RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg), clip_actions=0.5)
    env.step(torch.full((4, 1), 3.0))
    assert env.unwrapped.action_manager.action.tolist() == [[0.5]] * 4


@pytest.mark.slow_on_warp
def test_bad_checkpoints_are_named(env_cfg, rl_cfg, log_root, tmp_path):
    """Refuse missing files, other files, pickles that run code, and other networks."""
    with pytest.raises(FileNotFoundError, match=r"no checkpoint '.*none.pt'"):
        load_checkpoint(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(ValueError, match=r"text.pt' is not a checkpoint"):
        load_checkpoint(tmp_path / "text.pt")

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    torch.save(Evil(), tmp_path / "evil.pt")
    with pytest.raises(ValueError, match=r"evil.pt' is not a checkpoint"):
        load_checkpoint(tmp_path / "evil.pt")
    assert not (tmp_path / "ran").exists()
    result = run(env_cfg, rl_cfg, log_root)
    rl_cfg.actor.hidden_dims = (32,)
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(env_cfg)), rl_cfg)
    with pytest.raises(ValueError, match="does not fit these networks"):
        runner.load(result.checkpoint, load_cfg={"actor": True})


@pytest.mark.slow_on_warp
def test_resuming_a_finished_run_says_how_to_go_on(env_cfg, rl_cfg, log_root):
    """Refuse to resume when no iteration is left."""
    result = run(env_cfg, rl_cfg, log_root)
    with pytest.raises(ValueError, match=r"already has 4 iterations.*--agent.max-iterations"):
        run(env_cfg, rl_cfg, log_root, resume=result.checkpoint)
    assert len(list((log_root / "cartpole").iterdir())) == 1
    rl_cfg.max_iterations = 0
    with pytest.raises(ValueError, match="max_iterations must be at least 1, got 0"):
        run(env_cfg, rl_cfg, log_root)


def test_an_unwritable_place_is_named(env_cfg, rl_cfg, tmp_path):
    """Name the folder that cannot be written, and leave nothing behind."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"Cannot write a run folder in '.*file/cartpole'"):
        run(env_cfg, rl_cfg, tmp_path / "file")
    for experiment, name in (("../x", ""), ("..", ""), ("", ""), (".x", ""), ("x", "a/b")):
        rl_cfg.experiment_name, rl_cfg.run_name = experiment, name
        with pytest.raises(ValueError, match="must be plain folder names"):
            run(env_cfg, rl_cfg, tmp_path / "runs")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_full_disk_leaves_no_run_folder(env_cfg, rl_cfg, log_root, monkeypatch):
    """Remove the folder if its configuration cannot be written."""

    def full(path, config) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("manyworlds.rl.run_folder.dump_yaml", full)
    with pytest.raises(OSError, match="No space left"):
        run(env_cfg, rl_cfg, log_root)
    assert not log_root.exists()


@pytest.mark.slow_on_warp
def test_the_newest_run_is_found_by_task(env_cfg, rl_cfg, log_root):
    """Skip runs without a checkpoint and runs of other tasks."""
    with pytest.raises(FileNotFoundError, match="There is no trained run of task"):
        RunFolder.latest(log_root, TASK)
    first = run(env_cfg, rl_cfg, log_root)
    RunFolder.reserve(log_root, "cartpole", "").begin(TASK, env_cfg, rl_cfg)
    broken = log_root / "cartpole" / "broken"
    (broken / "params").mkdir(parents=True)
    (broken / "params" / "run.yaml").write_text("nothing: here")
    (broken / "model_0.pt").write_bytes(b"")
    assert RunFolder.latest(log_root) == first.run
    with pytest.raises(FileNotFoundError, match="of task 'Other'"):
        RunFolder.latest(log_root, "Other")


def _poison_once(env, env_ids) -> None:
    if env.common_step_counter == 3:
        env.sim.data.qvel[1] = 2e10  # more than MuJoCo accepts, yet a number for the learner


@pytest.mark.filterwarnings("ignore:.*worlds failed:RuntimeWarning")
@pytest.mark.slow_on_warp
def test_flight_records_lie_in_the_run_folder(env_cfg, rl_cfg, log_root):
    """Write the record of a world that went bad beside the run's checkpoints, and train on."""
    env_cfg.sim.nan_guard.enabled = True
    env_cfg.events["poison"] = EventTermCfg(func=_poison_once, mode="step")
    result = run(env_cfg, rl_cfg, log_root)
    assert len(list((result.run.path / "nan_dumps").glob("nan_dump_*.npz"))) == 1
    assert result.checkpoint.is_file()


@pytest.mark.slow_on_warp
def test_physics_has_the_cores_while_collecting(env_cfg, rl_cfg, log_root, monkeypatch):
    """Use one torch thread while worlds step, and torch's own number while the networks learn."""
    threads: dict[str, set[int]] = {"step": set(), "update": set()}

    def record(name: str, owner: type, method: str) -> None:
        original = getattr(owner, method)

        def recorded(*args, **kwargs):
            threads[name].add(torch.get_num_threads())
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, method, recorded)

    record("step", Simulation, "step")
    record("update", torch.optim.Adam, "step")
    rl_cfg.max_iterations = 2
    with torch_threads(6):
        run(env_cfg, rl_cfg, log_root)
    assert threads == {"step": {1}, "update": {3}}  # three for each of two networks
