"""Control steps in segments: terms of users that cannot be captured, between recorded graphs."""

from __future__ import annotations

import warnings

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ManagerTermBase,
    ObservationTermCfg,
    RewardTermCfg,
)
from manyworlds.validation.host_reads import gpu_paths
from manyworlds.validation.worlds import Worlds

pytest.importorskip("mujoco_warp")
from manyworlds.envs.step_graph import StepGraph, captured, why_not_equal
from tests.envs.test_step_graph import config, make, recorder, step

pytestmark = pytest.mark.slow  # kernels are compiled at first


def reads_a_value(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Reward that branches on a value, and logs it."""
    mean = env.sim.data.qpos.abs().mean().item()
    env.extras["log"]["Read/mean"] = mean
    if mean > 0.1:
        return env.sim.data.xpos[:, -1, 0] * env.common_step_counter
    return torch.full((env.num_envs,), mean)


def selects(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Observe the sum of some speeds, the last reward, and the position of the pole."""
    speed = env.sim.data.qvel[:, 0]
    moving = (speed > 0).nonzero().squeeze(1)
    total = speed[moving].sum().expand(env.num_envs)
    return torch.stack([total, env.reward_buf, env.sim.data.xpos[:, -1, 0]], dim=1)


class changes(ManagerTermBase):  # noqa: N801
    """Reward that keeps the last positions by assignment, and forgets them by ids."""

    state_attributes = ("last",)

    def __init__(self, cfg, env) -> None:
        super().__init__(env)
        self.last = torch.zeros(env.num_envs)

    def reset(self, env_ids: torch.Tensor | None = None) -> None:
        """Forget the positions."""
        self.last[env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv) -> torch.Tensor:
        now = env.sim.data.qpos[:, 0].clone()
        change = now - self.last
        self.last = now
        return change + float(change.sum() > 1.0)


def kept_by(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Capturable reward that reads what another term has assigned."""
    term = env.reward_manager.get_term_cfg("changes").func
    assert isinstance(term, changes)
    return term.last * 2.0


def pushes(env: ManagerBasedRlEnv, env_ids: torch.Tensor | None) -> None:
    """Set positions and velocities by ids."""
    cart = env.scene.entity("cartpole")
    ids = torch.arange(env.num_envs) if env_ids is None else env_ids
    drawn = env.random.uniform(-0.3, 0.3, (cart.num_joints,), env_ids=ids)
    cart.write_joint_state_to_sim(drawn, drawn, env_ids=ids)


def nudges(env: ManagerBasedRlEnv, env_mask: torch.Tensor) -> None:
    """Move by a mask, which a graph can contain."""
    worlds = Worlds.masked(env_mask)
    cart = env.scene.entity("cartpole")
    position = env.random.uniform(-0.2, 0.2, (cart.num_joints,), env_ids=worlds)
    cart.write_joint_position_to_sim(position, env_ids=worlds)


def with_terms(**terms: object) -> ManagerBasedRlEnvCfg:
    """Configure the cartpole with terms that cannot be captured."""
    cfg = config()
    for name, term in terms.items():
        if isinstance(term, RewardTermCfg):
            cfg.rewards[name] = term
        elif isinstance(term, EventTermCfg):
            cfg.events[name] = term
        elif isinstance(term, ObservationTermCfg):
            cfg.observations["actor"].terms[name] = term
    return cfg


READS = RewardTermCfg(func=reads_a_value, weight=1.0)
SELECTS = ObservationTermCfg(func=selects)
CHANGES = RewardTermCfg(func=changes, weight=1.0)
KEPT = RewardTermCfg(func=kept_by, weight=1.0)
AT_RESET = EventTermCfg(func=pushes, mode="reset")
AT_TIMES = EventTermCfg(func=pushes, mode="interval", interval_range_s=(0.05, 0.2))
NUDGES = EventTermCfg(func=nudges, mode="interval", interval_range_s=(0.05, 0.2))


@pytest.mark.parametrize(
    ("terms", "segments"),
    [
        ({"reads": READS}, 2),
        ({"resets": AT_RESET}, 2),
        ({"kicks": AT_TIMES}, 2),
        ({"selects": SELECTS}, 3),  # of the final observation, too
        ({"changes": CHANGES, "kept": KEPT}, 3),  # with its reset
        ({"kicks": AT_TIMES, "nudges": NUDGES, "again": AT_TIMES, "selects": SELECTS}, 5),
    ],
)
def test_terms_that_cannot_be_captured_run_between_graphs(terms, segments):
    """Name each term once, and compare 20 steps with those of Python, bit for bit."""
    env = make(with_terms(**terms))
    with gpu_paths(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = captured(env, strict=False, make_graph=recorder)
    assert graph is not None, [str(warning.message) for warning in caught]
    [warning] = caught
    message = str(warning.message)
    assert message.endswith(f"; the step has {segments} segments.")
    for name in terms.keys() - {"kept", "nudges"}:
        assert message.count(f"{name}' is not capturable: {__file__}:") == 1
    assert "kept" not in message and "nudges" not in message


def test_measurements_of_sensors_are_passed_on():
    """Let terms read rays, contacts and commands between graphs, whose terms read them, too."""
    env = make(config("Velocity-Flat-Quadruped"))
    between = [
        "RewardManager term 'foot_clearance'",
        "RewardManager term 'air_time'",
        "CommandManager term 'twist'",
        "ActionManager term 'joint_pos'",
        "EventManager term 'push_robot'",
    ]
    terms = {*env.reward_manager.term_objects, *env.command_manager.term_objects}
    terms |= {*env.action_manager.term_objects, *env.event_manager.term_objects}
    assert {name.split("'")[1] for name in between} <= terms
    graph = StepGraph(env, recorder, between)
    with gpu_paths():
        assert why_not_equal(env, graph) is None
    assert graph.segments > len(between)


def test_later_steps_equal_those_of_python_with_their_logs():
    """Compare 40 more steps and what they log, also what terms between the graphs log."""
    cfg = with_terms(reads=READS, selects=SELECTS, kicks=AT_TIMES, resets=AT_RESET)
    env, other = make(cfg), make(cfg)
    eager = [
        "RewardManager term 'reads'",
        "ObservationManager term 'actor/selects'",
        "EventManager term 'kicks'",
        "EventManager term 'resets'",
    ]
    env.step_graph = StepGraph(env, recorder, eager)
    for i in range(40):
        obs, reward, terminated, truncated, extras = step(env, 0.1 * (i % 7 - 3))
        expected = step(other, 0.1 * (i % 7 - 3))
        assert torch.equal(obs["actor"], expected[0]["actor"]), i
        assert torch.equal(reward, expected[1]) and torch.equal(terminated, expected[2])
        assert torch.equal(truncated, expected[3])
        assert torch.equal(env.sim.data.xpos, other.sim.data.xpos)
        assert extras["log"]["Read/mean"] == expected[4]["log"]["Read/mean"]
        assert extras["log"].keys() == expected[4]["log"].keys()
    assert env.step_graph.captures == 1
    assert env.common_step_counter == other.common_step_counter


def test_one_graph_is_refused_for_full():
    """Raise the first obstacle for 'full', where 'auto' runs a term between graphs."""
    env = make(with_terms(reads=READS))
    with gpu_paths(), pytest.raises(RuntimeError, match=r"term 'reads' .* reads values on the ho"):
        captured(env, strict=True, make_graph=recorder)


def fails_when_captured(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Reward of a library that finds itself recorded."""
    if env.reward_manager.capture is not None:
        raise RuntimeError("operation not permitted when stream is capturing")
    return env.sim.data.qpos[:, 0].clone()


def test_a_term_that_fails_while_it_is_captured_is_named():
    """Step by Python, say which term failed, and leave the environment as it was."""
    env = make(with_terms(fails=RewardTermCfg(func=fails_when_captured, weight=1.0)))
    before = env.sim.data.qpos.clone()
    with gpu_paths(), pytest.warns(UserWarning, match=r"'fails' .*operation not permitted"):
        assert captured(env, strict=False, make_graph=recorder) is None
    assert torch.equal(env.sim.data.qpos, before)
    assert env.reward_manager.capture is None and env.step_graph is None
    step(env)


def harder(env: ManagerBasedRlEnv, env_ids: torch.Tensor) -> float:
    """Curriculum that counts episodes by ids."""
    return float(len(env_ids))


def test_curricula_that_cannot_be_captured_are_refused():
    """Step by Python where a curriculum may change numbers that later graphs contain."""
    cfg = config()
    cfg.curriculum["harder"] = CurriculumTermCfg(func=harder)
    env = make(cfg)
    with gpu_paths(), pytest.warns(UserWarning, match="CurriculumManager term 'harder'"):
        assert captured(env, strict=False, make_graph=recorder) is None


def changes_shape(env: ManagerBasedRlEnv) -> dict[str, torch.Tensor]:
    """Return rows of another number in each step."""
    return {"rows": torch.zeros(int(env.common_step_counter))}


def test_results_must_keep_their_shape():
    """Refuse a result that does not fit the memory that graphs read."""
    env = make(config())

    def on_device(*args, **kwargs):
        report = yield from ManagerBasedRlEnv.on_device(env, *args, **kwargs)
        capture = env.reward_manager.capture
        if capture is not None:
            capture.call(changes_shape, env)
        return report

    env.on_device = on_device
    env.step_graph = StepGraph(env, recorder, ["any"])
    step(env)
    with pytest.raises(ValueError, match=r"changes_shape returned \(4,\).* but \(3,\)"):
        step(env)
