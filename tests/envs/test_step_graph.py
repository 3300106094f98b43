"""Control steps of an environment by a graph, which a recorder on the CPU stands in for."""

from __future__ import annotations

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    CurriculumTermCfg,
    ManagerTermBase,
    RewardTermCfg,
)
from manyworlds.sensor import ContactSensorCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.validation.host_reads import gpu_paths

pytest.importorskip("mujoco_warp")
from manyworlds.envs.step_graph import StepGraph, why_not_equal
from tests.recorded_graph import RecordedGraph
from tests.tasks.small_terrain import shrink_terrain

pytestmark = pytest.mark.slow  # kernels are compiled at first


def recorder(env: ManagerBasedRlEnv, before: object = None) -> RecordedGraph:
    """Return an empty graph."""
    return RecordedGraph()


def config(task: str = "Cartpole-Balance") -> ManagerBasedRlEnvCfg:
    """Configure six worlds of short episodes, in which much happens."""
    cfg = load_env_cfg(task)
    cfg.seed = 5
    cfg.scene.num_envs = 6
    cfg.sim.engine = "warp"
    cfg.sim.nan_guard.enabled = False
    cfg.episode_length_s = 0.3
    shrink_terrain(cfg)
    for command in cfg.commands.values():
        command.resampling_time_range = (0.05, 0.2)
    for event in cfg.events.values():
        if event.mode == "interval":
            event.interval_range_s = (0.05, 0.2)
    return cfg


def make(cfg: ManagerBasedRlEnvCfg) -> ManagerBasedRlEnv:
    """Build it with the random numbers of GPUs, and step until what is made once exists."""
    env = ManagerBasedRlEnv(cfg, device="cpu")
    with gpu_paths():
        for stream in env.random_streams.streams.values():
            stream.use(stream.states)
    for _ in range(2):
        step(env)
    return env


def step(env: ManagerBasedRlEnv, action: float = 0.0):
    """Step on the paths of GPUs."""
    with gpu_paths():
        return env.step(torch.full((env.num_envs, env.action_manager.total_action_dim), action))


@pytest.mark.parametrize(
    "task",
    [
        "Cartpole-Balance",
        "Velocity-Rough-Quadruped",
        "Push-Variants",
        "Lift-Cube-Arm",
        "Tracking-Flat-Humanoid",
    ],
)
def test_a_graph_equals_the_steps_of_python(task):
    """Compare 20 steps through resets, commands and events, bit for bit; come back from them."""
    env = make(config(task))
    before = env.sim.data.qpos.clone()
    with gpu_paths():
        assert why_not_equal(env, StepGraph(env, recorder)) is None
    assert torch.equal(env.sim.data.qpos, before) and env.step_graph is None


def test_delays_and_histories_are_repeated():
    """Compare delayed observations, histories of terms and contacts, and late sensors."""
    cfg = config("Velocity-Flat-Quadruped")
    for name, term in cfg.observations["actor"].terms.items():
        term.history_length = 3
        term.delay_max_lag = 2
        if name == "actions":
            term.history_length = 0
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, ContactSensorCfg):
            sensor.history_length = 2
            sensor.update_period = 0.04
    env = make(cfg)
    with gpu_paths():
        assert why_not_equal(env, StepGraph(env, recorder)) is None


class keeps_the_last(ManagerTermBase):  # noqa: N801
    """Reward that remembers by Python, which a graph does not repeat."""

    state_attributes = ("last",)

    def __init__(self, cfg, env) -> None:
        super().__init__(env)
        self.last = torch.zeros(env.num_envs)

    def __call__(self, env) -> torch.Tensor:
        now = env.sim.data.qpos[:, 0].clone()
        change = now - self.last
        self.last = now
        return change


def test_what_only_python_repeats_is_found():
    """Name the first result that differs, for a term that replaces its tensors."""
    cfg = config()
    cfg.rewards["keeps"] = RewardTermCfg(func=keeps_the_last, weight=1.0)
    env = make(cfg)
    with gpu_paths():
        assert why_not_equal(env, StepGraph(env, recorder)) == "rewards after step 2"


def test_results_are_not_overwritten():
    """Return tensors that keep their values, and logs of episodes, as steps of Python do."""
    env, other = make(config()), make(config())
    env.step_graph = StepGraph(env, recorder)
    results = [step(env, 0.1 * i) for i in range(12)]
    assert env.step_graph.captures == 1
    for i, (obs, reward, terminated, truncated, extras) in enumerate(results):
        expected = step(other, 0.1 * i)
        assert torch.equal(obs["actor"], expected[0]["actor"])
        assert torch.equal(reward, expected[1]) and torch.equal(terminated, expected[2])
        assert torch.equal(truncated, expected[3])
        assert torch.equal(extras["final_obs"]["actor"], expected[4]["final_obs"]["actor"])
        assert extras["log"].keys() == expected[4]["log"].keys()
        for name, value in expected[4]["log"].items():
            torch.testing.assert_close(
                extras["log"][name], value, equal_nan=True, check_dtype=False
            )
    assert env.common_step_counter == other.common_step_counter


def test_changed_settings_are_captured_again():
    """Capture again for a weight, a parameter, a stage of a curriculum, and after a reset."""
    cfg = config()
    stages = [{"step": 0, "weight": 1.0}, {"step": 9, "weight": 3.0}]
    cfg.rewards["staged"] = RewardTermCfg(func=mdp.is_alive, weight=1.0)
    cfg.rewards["changed"] = RewardTermCfg(func=mdp.is_alive, weight=1.0)
    cfg.curriculum["stage"] = CurriculumTermCfg(
        func=mdp.reward_curriculum, params={"reward_name": "staged", "stages": stages}
    )
    env, other = make(cfg), make(cfg)
    env.step_graph = StepGraph(env, recorder)
    counts = []
    for i in range(14):
        if i == 3:
            for one in (env, other):
                one.reward_manager.get_term_cfg("changed").weight = 0.7
        if i == 5:
            for one in (env, other):
                one.reset(env_ids=[1])
        assert torch.equal(step(env, 0.1)[1], step(other, 0.1)[1]), i
        counts.append(env.step_graph.captures)
    assert counts[2] == 1 and counts[3] == 2 and counts[4] == 2 and counts[5] == 3
    assert counts[-1] == 5  # at the stage, and with the weight that it sets


def test_the_cpu_and_what_looks_at_each_step_are_refused():
    """Say in one sentence why a step is not captured; raise it for 'full'."""
    cfg = config()
    cfg.sim.capture = "auto"
    with pytest.warns(UserWarning, match="is not captured: its worlds are on 'cpu', and graphs"):
        assert ManagerBasedRlEnv(cfg, device="cpu").step_graph is None
    cfg.sim.capture = "full"
    with pytest.raises(RuntimeError, match="or find the lines that prevent it"):
        ManagerBasedRlEnv(cfg, device="cpu")
