"""The checker of tasks: one broken task for each finding, and none for what is right."""

from dataclasses import dataclass

import pytest
import torch

from manyworlds.envs import check_env, mdp
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ManagerTermBase,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
)
from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.tasks import list_tasks, load_env_cfg

pytestmark = pytest.mark.slow_on_warp


def found(cfg) -> list[str]:
    """Return what is found, in one line each."""
    report = check_env(cfg, num_envs=4, steps=20)
    lines = [str(finding) for finding in report.findings]
    assert all("\n" not in line for line in lines) and report.ok == (not lines)
    return lines


@pytest.mark.parametrize("task", ["Cartpole-Balance", "Cartpole-Swingup"])
def test_cartpole_is_clean(task):
    """Find nothing in a task that is right, and leave its config as it was."""
    cfg = load_env_cfg(task)
    before = repr(cfg)
    report = check_env(cfg)
    assert report.ok and str(report).startswith(
        "ok: nothing found\nnote: terms that synchronize with a GPU"
    )
    assert repr(cfg) == before


@pytest.mark.slow
# Sixteen robots take half a minute; the four that are held out are of the same kind.
@pytest.mark.parametrize("task", [t for t in list_tasks() if t != "Velocity-Flat-Legged"])
def test_tasks_are_clean(task):
    """Find nothing to mend in any task that is registered."""
    try:
        cfg = load_env_cfg(task)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert not check_env(cfg).findings


def test_what_commands_learn_is_no_leftover():
    """Compare resets with the statistics of failures that the first one had."""
    cfg = load_env_cfg("Tracking-Flat-Humanoid")
    assert not check_env(cfg).findings


def test_a_term_of_wrong_shape_is_found(env_cfg):
    """Name the term, what it returned and what it should."""
    env_cfg.rewards["bad"] = RewardTermCfg(func=lambda env: torch.zeros(4, 1), weight=1.0)
    [line] = found(env_cfg)
    assert "raises ValueError" in line and "'bad'" in line and "expected (4,)" in line


def test_a_term_that_fails_later_is_found(env_cfg):
    """Name a term that raises only once the episode is under way."""

    def late(env):
        if env.common_step_counter > 3:
            raise IndexError("no more")
        return torch.rand(env.num_envs)

    env_cfg.rewards["late"] = RewardTermCfg(func=late, weight=1.0)
    [line] = found(env_cfg)
    assert "raises IndexError" in line and "'late'" in line and "no more" in line


class Heights(ManagerTermBase):
    """Sum of bodies' heights, without a declaration of what is read."""

    def __init__(self, cfg, env):
        super().__init__(env)

    def __call__(self, env, asset_cfg):
        return env.scene.entity(asset_cfg.name).data.body_link_pos_w[..., 2].sum(dim=1)


class DeclaredHeights(Heights):
    """The same with a declaration."""

    selects = frozenset({"body"})


@pytest.mark.parametrize(("func", "noted"), [(Heights, True), (DeclaredHeights, False)])
def test_selections_that_are_not_checked_are_noted(func, noted):
    """Name the class that does not declare what it reads, and what to write there."""
    cfg = load_env_cfg("Cartpole-Balance")
    pole = SceneEntityCfg("cartpole", body_names=("pole",))
    cfg.rewards["height"] = RewardTermCfg(func=func, weight=1.0, params={"asset_cfg": pole})
    notes = [note for note in check_env(cfg, num_envs=4, steps=5).notes if "selects" in note]
    assert len(notes) == noted
    if noted:
        assert notes[0].startswith("reward 'height': Heights declares no `selects`")
        assert "frozenset({'body'})" in notes[0]


@dataclass
class Shown:
    """Return values of an observation, and the findings about it."""

    func: object
    expected: str
    scale: float | None = None


def test_terms_that_no_fork_can_repeat_are_noted(env_cfg):
    """Name terms that draw from torch's generators, of every kind; leave out the others."""

    def plain(env):
        return torch.rand_like(env.reward_buf)

    def own(env):
        return env.random.uniform()

    def push(env, env_ids):
        env.sim.data.qvel.add_(torch.empty(env.num_envs, 1).normal_())

    env_cfg.rewards["plain"] = RewardTermCfg(func=plain, weight=1.0)
    env_cfg.rewards["own"] = RewardTermCfg(func=own, weight=1.0)
    env_cfg.events["push"] = EventTermCfg(func=push, mode="reset")
    notes = check_env(env_cfg, num_envs=4, steps=20).notes
    named = [note for note in notes if "torch's own generators" in note]
    assert [note.partition(" draws")[0] for note in sorted(named)] == [
        "EventManager term 'push'",
        "RewardManager term 'plain'",
    ]


@pytest.mark.parametrize(
    "shown",
    [
        Shown(lambda env: torch.full((4, 1), torch.nan), "is not finite: look for a division"),
        Shown(lambda env: torch.full((4, 2), 3.0), "is always 3, in all worlds: remove it"),
        Shown(lambda env: 5e3 * torch.rand(4, 1).round(), "reaches 5e+03: give it a scale"),
        Shown(lambda env: 5.0 * torch.rand(4, 1).round(), "reaches 5e+03: give it", scale=1e3),
        Shown(lambda env: 5e3 * torch.rand(4, 1).round(), "", scale=1e-3),
        Shown(lambda env: torch.arange(4.0)[:, None], ""),
    ],
)
def test_observations_are_judged_as_they_are_seen(env_cfg, shown):
    """Find what is not finite, constant or large, after clip and scale."""
    terms = env_cfg.observations["actor"].terms
    terms["odd"] = ObservationTermCfg(func=shown.func, scale=shown.scale)
    lines = found(env_cfg)
    assert len(lines) == bool(shown.expected)
    assert all(line.startswith(f"observation 'actor/odd' {shown.expected}") for line in lines)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(-1.0, "is always -1, in all worlds"), (torch.inf, "is not finite, and counts as zero")],
)
def test_rewards_that_teach_nothing_are_found(env_cfg, value, expected):
    """Find constant and infinite rewards; one of weight 0 is not looked at."""
    constant = RewardTermCfg(func=lambda env: torch.full((4,), value), weight=1.0)
    env_cfg.rewards["odd"] = constant
    env_cfg.rewards["off"] = RewardTermCfg(func=constant.func, weight=0.0)
    [line] = found(env_cfg)
    assert line.startswith(f"reward 'odd' {expected}")


def test_a_reward_for_staying_alive_is_noted(env_cfg):
    """Note a reward that is constant because random actions end no episode."""
    env_cfg.rewards["alive"] = RewardTermCfg(func=mdp.is_alive, weight=1.0)
    report = check_env(env_cfg, num_envs=4, steps=20)
    assert report.ok
    assert any("'alive', perhaps a reward for staying alive" in note for note in report.notes)


@pytest.mark.parametrize(
    ("value", "weight", "expected"),
    [(0.0, -1.0, ""), (1.0, -1.0, "is always 1"), (0.0, 1.0, "")],
)
def test_penalties_and_rewards_of_goals_may_be_zero(env_cfg, value, weight, expected):
    """Note a term that random actions do not cause; find other constants."""
    env_cfg.rewards["odd"] = RewardTermCfg(func=lambda env: torch.full((4,), value), weight=weight)
    report = check_env(env_cfg, num_envs=4, steps=20)
    assert [str(f).startswith(f"reward 'odd' {expected}") for f in report.findings] == (
        [True] if expected else []
    )
    kind = "a penalty" if weight < 0.0 else "perhaps of a goal"
    noted = any(note.startswith(f"reward 'odd', {kind}, is always 0") for note in report.notes)
    assert noted != bool(expected)


def test_rewards_that_are_all_zero_are_found(env_cfg):
    """Find a reward of zero if there is no other one that could teach anything."""
    env_cfg.rewards = {"odd": RewardTermCfg(func=lambda env: torch.zeros(4), weight=1.0)}
    [line] = found(env_cfg)
    assert line.startswith("reward 'odd' is always 0, in all worlds")


def test_episodes_that_end_at_once_are_found(env_cfg):
    """Name the condition that is true right after a reset."""
    env_cfg.terminations["short"] = TerminationTermCfg(func=lambda env: torch.ones(4).bool())
    assert "termination 'short' ends 100% of all episodes in their first step" in found(env_cfg)[0]


def test_a_reset_that_leaves_state_behind_is_found(env_cfg):
    """Name state and model fields that a reset carries over from the old episode."""

    def heavier(env, env_ids):
        env.sim.model.body_mass[:] *= 1.5

    env_cfg.events["mass"] = EventTermCfg(func=heavier, mode="reset")
    assert any(line.startswith("sim.model.body_mass after a reset") for line in found(env_cfg))
    counter = []

    def drift(env, env_ids):
        counter.append(1)
        position = torch.full((len(env_ids), 1), 1e-3 * len(counter))
        env.scene["cartpole"].write_joint_position_to_sim(position, [0], env_ids)

    env_cfg.events["mass"] = EventTermCfg(func=drift, mode="reset")
    [line] = found(env_cfg)
    assert line.startswith("sim.data.qpos after a reset depends on the state before it: let an")


def test_a_term_that_remembers_the_old_episode_is_found(env_cfg):
    """Name a term whose memory a reset does not clear."""

    class Total(ManagerTermBase):
        def __init__(self, cfg, env):
            super().__init__(env)
            self.total = torch.zeros(env.num_envs)

        def __call__(self, env):
            self.total += env.scene["cartpole"].data.joint_vel[:, 0].abs()
            return self.total.clone()

    env_cfg.rewards["total"] = RewardTermCfg(func=Total, weight=1.0)
    [line] = found(env_cfg)
    assert line.startswith("reward 'total' after a reset depends") and "reset(env_ids)" in line


def test_what_may_outlive_a_reset_is_no_finding(env_cfg):
    """Leave curricula out of the comparison, and say where timers forbid it."""
    env_cfg.curriculum = {"c": CurriculumTermCfg(func=lambda env, ids: env.common_step_counter)}
    assert check_env(env_cfg, num_envs=4, steps=10).ok

    def drift(env, env_ids):
        env.scene["cartpole"].write_joint_position_to_sim(
            torch.full((len(env_ids), 1), 1e-4 * env.common_step_counter), [0], env_ids
        )

    env_cfg.events["drift"] = EventTermCfg(func=drift, mode="reset", min_step_count_between_reset=3)
    report = check_env(env_cfg, num_envs=4, steps=10)
    assert report.ok and "timers of the events ['drift'] continue through them" in str(report)


def test_a_sensor_that_nobody_reads_is_found(env_cfg):
    """Name it; one that a term reads is none."""
    env_cfg.scene.sensors = tuple(
        BuiltinSensorCfg(
            name=name,
            sensor_type="jointvel",
            obj=ObjRef(type="joint", name="slider", entity="cartpole"),
        )
        for name in ("read", "unread")
    )
    terms = env_cfg.observations["actor"].terms
    terms["sensed"] = ObservationTermCfg(func=lambda env: env.scene["read"].data)
    [line] = found(env_cfg)
    assert line == "sensor 'unread' is never read: read it in a term, or leave it out of the scene"
