"""Managers and entities in a project's own tests, with mocks in place of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock

import mujoco
import pytest
import torch

from manyworlds.compat import mjlab
from tests.envs.mdp.robot import robot_cfg

pytestmark = pytest.mark.usefixtures("alias")


class Plain:
    """The least that managers read."""

    num_envs = 4
    device = "cpu"
    step_dt = 0.02
    max_episode_length_s = 10.0


@pytest.fixture(params=["mock", "plain"])
def env(request, alias) -> Any:
    """Stand in for an environment of four worlds, without a simulation."""
    env: Any = Plain()
    if request.param == "mock":
        env = Mock()
        for name in ("num_envs", "device", "step_dt", "max_episode_length_s"):
            setattr(env, name, getattr(Plain, name))
    env.scene = {"robot": Mock()}
    return env


def ones(env: Any, width: int = 2) -> torch.Tensor:
    """Return columns of ones."""
    return torch.ones(env.num_envs, width)


def test_observations_are_computed(env):
    """Compute history, delays and noise."""
    from mjlab.managers.observation_manager import (
        ObservationGroupCfg,
        ObservationManager,
        ObservationTermCfg,
    )
    from mjlab.utils.noise import UniformNoiseCfg

    terms = {
        "plain": ObservationTermCfg(func=ones, params={"width": 3}, scale=2.0),
        "history": ObservationTermCfg(func=ones, history_length=3),
        "late": ObservationTermCfg(func=ones, delay_min_lag=1, delay_max_lag=2),
        "noisy": ObservationTermCfg(func=ones, noise=UniformNoiseCfg(n_min=-0.1, n_max=0.1)),
    }
    group = ObservationGroupCfg(terms=terms, enable_corruption=True)
    manager = ObservationManager({"policy": group}, env)
    for _ in range(4):
        shown = manager.compute(update_history=True)["policy"]
    assert shown.shape == (4, 13) and (shown[:, :3] == 2.0).all()
    assert not torch.equal(shown[:, 11:], ones(env))
    manager.reset(env_ids=torch.tensor([0]))


def test_rewards_terminations_curricula_and_metrics_are_computed(env):
    """Compute terms, and log them at resets."""
    from mjlab.managers import (
        CurriculumManager,
        CurriculumTermCfg,
        MetricsManager,
        MetricsTermCfg,
        RewardManager,
        RewardTermCfg,
        TerminationManager,
        TerminationTermCfg,
    )

    def one(env):
        return torch.ones(env.num_envs)

    rewards = RewardManager({"one": RewardTermCfg(func=one, weight=2.0)}, env)
    assert rewards.compute(dt=0.02).tolist() == pytest.approx([0.04] * 4)
    assert rewards.reset()["Episode_Reward/one"] == pytest.approx(0.004)
    ends = TerminationManager({"end": TerminationTermCfg(func=lambda env: one(env) > 0)}, env)
    assert ends.compute().all() and ends.terminated.all() and not ends.time_outs.any()
    curricula = CurriculumManager({"stage": CurriculumTermCfg(func=lambda env, ids: 2.0)}, env)
    curricula.compute(env_ids=torch.tensor([0]))
    assert curricula.reset(torch.tensor([0])) == {"Curriculum/stage": 2.0}
    metrics = MetricsManager({"one": MetricsTermCfg(func=one)}, env)
    metrics.compute()
    assert metrics.reset(torch.tensor([1]))["Episode_Metrics/one"] == 1.0


def test_commands_and_actions_are_advanced(env):
    """Build terms of a project, sample and advance commands, and process actions."""
    from mjlab.managers.action_manager import ActionManager, ActionTerm, ActionTermCfg
    from mjlab.managers.command_manager import CommandManager, CommandTerm, CommandTermCfg

    class Command(CommandTerm):
        command = torch.zeros(4, 1)

        def _resample_command(self, env_ids):
            self.sampled = env_ids

        def _update_command(self, env_ids=None):
            pass

        def _update_metrics(self):
            pass

    class Action(ActionTerm):
        action_dim = 2
        raw_action = torch.zeros(4, 2)

        def process_actions(self, actions):
            self.given = actions

        def apply_actions(self):
            self._entity.move(self.given)

        def reset(self, env_ids=None):
            pass

    @dataclass(kw_only=True)
    class CommandCfg(CommandTermCfg):
        def build(self, env):
            return Command(self, env)

    @dataclass(kw_only=True)
    class ActionCfg(ActionTermCfg):
        def build(self, env):
            return Action(self, env)

    commands = CommandManager({"go": CommandCfg(resampling_time_range=(0.1, 0.2))}, env)
    commands.reset(torch.arange(4))
    commands.compute(dt=0.05)
    term = commands.get_term("go")
    assert term.command_counter.tolist() == [1] * 4 and term.sampled.tolist() == [0, 1, 2, 3]
    actions = ActionManager({"move": ActionCfg(entity_name="robot")}, env)
    actions.process_action(ones(env))
    actions.apply_action()
    env.scene["robot"].move.assert_called_once()
    assert torch.equal(actions.action, ones(env))


def test_events_are_applied(env):
    """Apply events of all modes, and recompute what they need by the project's own method."""
    from mjlab.managers.event_manager import (
        EventManager,
        EventTermCfg,
        RecomputeLevel,
        requires_model_fields,
    )

    env.sim = Mock()
    calls: list[str] = []

    def event(name: str, **options: Any) -> EventTermCfg:
        return EventTermCfg(func=lambda env, env_ids: calls.append(name), **options)

    @requires_model_fields("body_mass", recompute=RecomputeLevel.set_const)
    def load(env, env_ids):
        calls.append("load")

    terms = {
        "start": event("start", mode="startup"),
        "reset": event("reset", mode="reset"),
        "timed": event("timed", mode="interval", interval_range_s=(0.02, 0.02)),
        "step": event("step", mode="step"),
        "load": EventTermCfg(func=load, mode="reset"),
    }
    sim = env.sim
    manager = EventManager(terms, env)
    assert manager.domain_randomization_fields[0] == "body_mass"
    manager.apply("startup")
    manager.apply("reset", env_ids=torch.tensor([0, 1]), global_env_step_count=0)
    manager.apply("interval", dt=0.02)
    manager.apply("step", dt=0.02)
    assert calls == ["start", "reset", "load", "timed", "step"]
    sim.recompute_constants.assert_called_once_with(RecomputeLevel.set_const)


def test_an_entity_runs_without_a_scene(alias):
    """Compile an entity alone, and drive it in a simulation of its model."""
    from mjlab.actuator.builtin_group import BuiltinActuatorGroup
    from mjlab.entity import Entity
    from mjlab.sim.sim import Simulation, SimulationCfg

    entity: Any = Entity(robot_cfg())
    model = entity.compile()
    sim = Simulation(num_envs=2, cfg=SimulationCfg(), model=model, device="cpu")
    entity.initialize(model, sim.model, sim.data, "cpu")
    assert isinstance(model, mujoco.MjModel)
    assert isinstance(entity._builtin_group, BuiltinActuatorGroup)
    assert entity._custom_actuators == () and not entity._fused_actuator_group._groups
    target = torch.full((2, 4), 0.1)
    entity.set_joint_position_target(target)
    entity.write_data_to_sim()
    for _ in range(200):
        entity.write_data_to_sim()
        sim.step()
    entity.update(0.002)
    assert (entity.data.joint_pos[:, 0] - 0.1).abs().max() < 0.2


def test_environments_are_not_completed_without_the_alias():
    """Leave objects alone once the alias is gone."""
    from manyworlds.managers import ManagerBase

    mjlab.uninstall()
    env: Any = Plain()
    ManagerBase(env)
    assert not hasattr(env, "random_streams")
