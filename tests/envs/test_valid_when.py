"""The table of `docs/managers/valid_when.md`: what is valid when, one test for each row."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    MetricsTermCfg,
    ObservationTermCfg,
    RecorderTerm,
    RecorderTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.tasks import load_env_cfg


@dataclass(kw_only=True)
class CounterCfg(CommandTermCfg):
    """Configuration of `Counter`."""

    moves_cart: bool = False

    def build(self, env):
        return Counter(self, env)


class Counter(CommandTerm):
    """Counts updates since the episode began, and notes where the cart is when it is resampled."""

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.count = torch.zeros(self.num_envs, 1)
        self.cart_at_start = torch.zeros(self.num_envs)
        self.metrics = {"count": torch.zeros(self.num_envs)}

    @property
    def command(self):
        return self.count

    def _resample_command(self, env_ids):
        self.cart_at_start[env_ids] = cart_place(self._env)[env_ids]
        self.count[env_ids] = 0.0
        if self.cfg.moves_cart:
            self._env.scene["cartpole"].write_joint_position_to_sim(
                torch.full((len(env_ids), 1), 0.5), [0], env_ids
            )

    def _update_command(self, env_ids):
        if env_ids is None:
            self.count += 1.0

    def _update_metrics(self):
        self.metrics["count"] += 1.0


def cart_place(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return where the cart's body is along its rail, which is derived from the state."""
    robot = env.scene["cartpole"]
    ids, _ = robot.find_bodies("cart")
    return (robot.data.body_link_pos_w[:, ids[0]] - robot.data.root_link_pos_w)[:, 0].clone()


def put_cart(env: ManagerBasedRlEnv, place: float, env_ids) -> None:
    """Write the cart's position."""
    count = env.num_envs if env_ids is None else len(env_ids)
    env.scene["cartpole"].write_joint_position_to_sim(torch.full((count, 1), place), [0], env_ids)


def add_observation(cfg, name: str, func) -> None:
    """Observe a column of numbers, before the other terms."""
    terms = cfg.observations["actor"].terms
    cfg.observations["actor"].terms = {name: ObservationTermCfg(func=func), **terms}


def end_at_next_step(env: ManagerBasedRlEnv, *worlds: int) -> None:
    """Let the episodes of some worlds reach their limit."""
    env.episode_length_buf[list(worlds)] = env.max_episode_length - 1


@pytest.fixture
def counting(env_cfg):
    """Configure worlds with a counter as command, which is observed."""
    env_cfg.commands = {"n": CounterCfg(resampling_time_range=(100.0, 100.0))}
    add_observation(env_cfg, "count", lambda env: env.command_manager.get_command("n"))
    return env_cfg


def test_log_entries_of_every_term_are_in_the_dict_of_their_step(env_cfg):
    """Keep what terms of all managers write to the log of the step in which they run."""

    def note(name: str, value):
        def call(env, env_ids=None):
            env.extras["log"][name] = env.common_step_counter
            return value(env)

        return call

    zeros = lambda env: torch.zeros(env.num_envs)  # noqa: E731
    env_cfg.rewards["r"] = RewardTermCfg(func=note("reward", zeros), weight=1.0)
    env_cfg.metrics["m"] = MetricsTermCfg(func=note("metric", zeros))
    env_cfg.terminations["t"] = TerminationTermCfg(
        func=note("termination", lambda env: zeros(env).bool())
    )
    env_cfg.events["s"] = EventTermCfg(func=note("event", lambda env: None), mode="step")
    add_observation(env_cfg, "o", note("observation", lambda env: zeros(env)[:, None]))
    env = ManagerBasedRlEnv(env_cfg)
    first = env.step(torch.zeros(4, 1))[-1]
    second = env.step(torch.zeros(4, 1))[-1]
    names = ("reward", "metric", "termination", "event", "observation")
    assert [first["log"][name] for name in names] == [1] * 5
    assert [second["log"][name] for name in names] == [2] * 5


def test_final_observations_have_the_command_of_their_step(counting):
    """Advance commands before the last observation, but start no new one in an ended episode."""
    counting.auto_reset = False
    manual = ManagerBasedRlEnv(counting)
    counting.auto_reset = True
    env = ManagerBasedRlEnv(counting)
    for _ in range(4):
        manual.step(torch.zeros(4, 1))
        env.step(torch.zeros(4, 1))
    end_at_next_step(env, 2)
    end_at_next_step(manual, 2)
    obs, *_, extras = env.step(torch.zeros(4, 1))
    assert extras["final_obs"]["actor"][:, 0].tolist() == [5.0] * 4
    assert (
        extras["final_obs"]["actor"][:, 0].tolist()
        == manual.step(torch.zeros(4, 1))[0]["actor"][:, 0].tolist()
    )
    assert obs["actor"][:, 0].tolist() == [5.0, 5.0, 0.0, 5.0]
    assert extras["log"]["Metrics/n/count"] == 5.0


def test_a_command_that_expires_with_its_episode_is_not_resampled_for_the_last_observation(
    counting,
):
    """Resample it once, for the new episode."""
    counting.commands["n"].resampling_time_range = (0.25, 0.25)  # five steps
    env = ManagerBasedRlEnv(counting)
    term = env.command_manager.get_term("n")
    for _ in range(4):
        env.step(torch.zeros(4, 1))
    end_at_next_step(env, 1)
    final = env.step(torch.zeros(4, 1))[-1]["final_obs"]["actor"]
    assert final[1, 0] == 5.0
    assert term.command_counter.tolist() == [2, 1, 2, 2]


def test_commands_read_the_kinematics_of_the_new_episode(counting):
    """Compute positions of bodies before a command that reads them is resampled."""
    counting.events = {
        "put": EventTermCfg(func=lambda env, ids: put_cart(env, 0.3, ids), mode="reset")
    }
    env = ManagerBasedRlEnv(counting)
    term = env.command_manager.get_term("n")
    assert term.cart_at_start.tolist() == pytest.approx([0.3] * 4)
    for _ in range(10):
        env.step(torch.ones(4, 1))
    assert ((cart_place(env) - 0.3).abs() > 0.05).all()
    end_at_next_step(env, 3)
    env.step(torch.ones(4, 1))
    assert term.cart_at_start.tolist() == pytest.approx([0.3] * 4)


def test_later_events_read_the_kinematics_that_earlier_ones_left(env_cfg):
    """Compute positions of bodies between events that write and read the state, in each mode."""
    seen: dict[str, list[float]] = {}

    def read(name: str):
        def call(env, env_ids):
            places = cart_place(env)
            seen[name] = (places if env_ids is None else places[env_ids]).tolist()

        return call

    def put(place: float):
        return lambda env, env_ids: put_cart(env, place, env_ids)

    always = {"mode": "interval", "interval_range_s": (0.0, 0.0)}
    env_cfg.events = {
        "before": EventTermCfg(func=read("before"), mode="reset"),
        "first": EventTermCfg(func=put(0.2), mode="reset"),
        "between": EventTermCfg(func=read("between"), mode="reset"),
        "second": EventTermCfg(func=put(-0.4), mode="reset"),
        "after": EventTermCfg(func=read("after"), mode="reset"),
        "step put": EventTermCfg(func=put(0.6), mode="step"),
        "step read": EventTermCfg(func=read("step"), mode="step"),
        "interval put": EventTermCfg(func=put(0.7), **always),
        "interval read": EventTermCfg(func=read("interval"), **always),
    }
    env = ManagerBasedRlEnv(env_cfg)
    for _ in range(2):
        env.step(torch.ones(4, 1))
    end_at_next_step(env, 1)
    env.step(torch.ones(4, 1))
    wanted = {"before": 0.0, "between": 0.2, "after": -0.4}
    for name, place in wanted.items():
        assert seen[name] == pytest.approx([place], abs=1e-6), name
    assert seen["step"] == pytest.approx([0.6] * 4)
    assert seen["interval"] == pytest.approx([0.7] * 4)


def test_observations_see_what_a_command_wrote_to_the_state(counting):
    """Compute kinematics after a command that moves the robot during an episode."""
    counting.commands["n"] = CounterCfg(resampling_time_range=(0.1, 0.1), moves_cart=True)
    add_observation(counting, "place", lambda env: cart_place(env)[:, None])
    env = ManagerBasedRlEnv(counting)
    env.step(torch.ones(4, 1))
    obs = env.step(torch.ones(4, 1))[0]
    assert obs["actor"][:, 0].tolist() == pytest.approx([0.5] * 4)


def test_failures_are_counted_once(env_cfg):
    """Count an episode in the log of the step that ends it, not in that of a reset afterwards."""
    env_cfg.terminations["fell"] = TerminationTermCfg(
        func=lambda env: torch.tensor([False, env.common_step_counter == 2, False, False])
    )
    env = ManagerBasedRlEnv(env_cfg)
    env.step(torch.zeros(4, 1))
    log = env.step(torch.zeros(4, 1))[-1]["log"]
    assert int(log["Episode_Termination/fell"]) == 1
    log = env.reset()[1]["log"]
    assert int(log["Episode_Termination/fell"]) == 0
    assert "Episode_Termination/fell" not in env.reset()[1]["log"]


def test_means_of_a_log_are_those_of_episodes_that_end(env_cfg):
    """Leave worlds without an episode out of the means of rewards, metrics and commands."""
    env_cfg.commands = {"n": CounterCfg(resampling_time_range=(100.0, 100.0))}
    env_cfg.rewards = {"one": RewardTermCfg(func=lambda env: torch.ones(4), weight=1.0)}
    env_cfg.metrics = {"one": MetricsTermCfg(func=lambda env: torch.ones(4), reduce="sum")}
    env = ManagerBasedRlEnv(env_cfg)
    for _ in range(3):
        env.step(torch.zeros(4, 1))
    env.reset(env_ids=[0, 1, 2])
    log = env.reset()[1]["log"]
    assert log["Metrics/n/count"] == log["Episode_Metrics/one"] == 3.0
    expected = 3 * env.step_dt / env.max_episode_length_s
    assert log["Episode_Reward/one"].item() == pytest.approx(expected)


def test_recorders_and_curricula_see_no_episode_without_steps(env_cfg):
    """Call them for worlds that have stepped since their last reset."""
    seen: list[list[int]] = []

    class Ends(RecorderTerm):
        def record_pre_reset(self, env_ids):
            seen.append(env_ids.tolist())

    env_cfg.recorders = {"r": RecorderTermCfg(func=Ends)}
    env = ManagerBasedRlEnv(env_cfg)
    env.reset()
    assert seen == []
    env.step(torch.zeros(4, 1))
    env.reset(env_ids=[1])
    env.reset()
    env.reset()
    assert seen == [[1], [0, 2, 3]]


def test_terrain_levels_move_only_at_the_end_of_an_episode():
    """Keep the drawn levels at the build and at resets without a step."""
    cfg = load_env_cfg("Velocity-Rough-Quadruped")
    cfg.scene.num_envs = 16
    cfg.seed = 3
    cfg.scene.terrain.max_init_terrain_level = 2
    drawn: list[torch.Tensor] = []
    cfg.events["drawn"] = EventTermCfg(
        func=lambda env, ids: drawn.append(env.scene.terrain.terrain_levels.clone()),
        mode="startup",
    )
    env = ManagerBasedRlEnv(cfg)
    terrain = env.scene.terrain
    assert terrain.terrain_levels.max() <= 2
    assert torch.equal(terrain.terrain_levels, drawn[0])
    env.reset()
    assert torch.equal(terrain.terrain_levels, drawn[0])


def test_stages_of_a_curriculum_hold_from_the_first_episode(env_cfg):
    """Run curricula for no world when the environment is built."""
    seen: list[int] = []

    def stage(env, env_ids):
        seen.append(len(env_ids))
        env.reward_manager.get_term_cfg("smooth_reward").weight = 3.0

    env_cfg.curriculum = {"c": CurriculumTermCfg(func=stage)}
    env = ManagerBasedRlEnv(env_cfg)
    assert seen == [0]
    assert env.reward_manager.get_term_cfg("smooth_reward").weight == 3.0


def test_clocks_of_commands_and_events_end_with_their_step(env_cfg):
    """Resample and fire after 20 steps of 0.05 s for 1 s, again and again."""
    fired: list[int] = []
    env_cfg.commands = {"n": CounterCfg(resampling_time_range=(1.0, 1.0))}
    env_cfg.events["i"] = EventTermCfg(
        func=lambda env, ids: fired.append(env.common_step_counter),
        mode="interval",
        interval_range_s=(1.0, 1.0),
        is_global_time=True,
    )
    env = ManagerBasedRlEnv(env_cfg)
    term = env.command_manager.get_term("n")
    resampled = []
    for step in range(1, 101):
        before = term.command_counter.clone()
        env.step(torch.zeros(4, 1))
        if (term.command_counter > before).all():
            resampled.append(step)
    assert resampled == fired == [20, 40, 60, 80, 100]


def test_a_saved_state_knows_which_worlds_have_stepped(env_cfg):
    """Continue with worlds that have an episode and worlds that have none."""
    env = ManagerBasedRlEnv(env_cfg)
    env.step(torch.zeros(4, 1))
    env.reset(env_ids=[2])
    other = ManagerBasedRlEnv(env_cfg)
    other.load_state_dict(env.state_dict())
    assert other.has_stepped.tolist() == [True, True, False, True]
    old = env.state_dict()
    del old["has_stepped"]  # as saved by an earlier version
    other.load_state_dict(old)
    assert other.has_stepped.all()


def last_action(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return the last action of the policy."""
    return env.action_manager.action[:, 0]


def state(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return the cart's position, which is state."""
    return env.scene["cartpole"].data.joint_pos[:, 0]


def control(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return what the actuator of the cart was told."""
    return env.sim.data.ctrl[:, 0]


def acceleration(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return the cart's acceleration."""
    return env.sim.data.qacc[:, 0]


def episode_length(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return the number of steps of the episode."""
    return env.episode_length_buf.float()


def step_counter(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return the number of steps of the environment."""
    return torch.full((env.num_envs,), float(env.common_step_counter))


def ended(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return which episodes ended in this step."""
    return env.reset_buf.float()


def friction(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return a model field that an event of each step raises by 1."""
    return env.sim.model.dof_frictionloss[:, 0]


def test_accelerations_are_one_physics_step_behind_but_at_the_start_of_an_episode(env_cfg):
    """Give terms those before the last physics step, and first observations those of the state."""
    seen: list[torch.Tensor] = []
    env_cfg.events = {}
    env_cfg.rewards = {
        "r": RewardTermCfg(
            func=lambda env: seen.append(acceleration(env).clone()) or state(env), weight=1.0
        )
    }
    env = ManagerBasedRlEnv(env_cfg)
    env.step(torch.ones(4, 1))
    end_at_next_step(env, 1)
    env.step(torch.ones(4, 1))
    last = acceleration(env).clone()
    assert torch.equal(last[[0, 2, 3]], seen[-1][[0, 2, 3]])
    env.sim.forward()
    assert (acceleration(env) != last)[[0, 2, 3]].all()
    assert acceleration(env)[1] == last[1] != seen[-1][1]


# Parts of a step in which world 0, whose episode goes on, has the new values, and those in which
# world 1, whose episode ends, already has those of the next episode.
TERMS = ("termination", "reward", "metric")
LATER = ("event", "command", "final observation", "curriculum", "reset event", "observation")
NEXT = ("reset event", "observation")
ROWS = [
    (last_action, ("physics", *TERMS, *LATER), ("observation",)),
    (state, (*TERMS, *LATER), NEXT),
    (cart_place, (*TERMS, *LATER), NEXT),
    (control, ("physics", *TERMS, *LATER), NEXT),
    (episode_length, (*TERMS, *LATER), ("observation",)),
    (step_counter, (*TERMS, *LATER), ()),
    (ended, ("reward", "metric", *LATER), ()),
    (friction, LATER[1:], ()),
]


@pytest.mark.parametrize(("read", "new", "next_episode"), ROWS)
def test_a_quantity_is_new_from_its_part_of_the_step_on(env_cfg, read, new, next_episode):
    """Read a quantity in each part of a step, in a world that goes on and in one that ends."""
    seen: dict[str, torch.Tensor] = {}

    def probe(part: str, value=None):
        def call(env, env_ids=None):
            seen[part] = read(env).clone()
            return value(env) if value else None

        return call

    zeros = lambda env: torch.zeros(env.num_envs)  # noqa: E731

    def observe(env):
        # The last observation of an episode comes before the others.
        part = "observation" if "curriculum" in seen else "final observation"
        seen[part] = read(env).clone()
        return zeros(env)[:, None]

    def rub(env, env_ids):
        env.sim.model.dof_frictionloss[:] += 1.0

    class Command(Counter):
        def _update_command(self, env_ids):
            if env_ids is None:
                seen["command"] = read(self._env).clone()

    env_cfg.terminations = {
        "probe": TerminationTermCfg(func=probe("termination", lambda env: zeros(env).bool())),
        "end": TerminationTermCfg(func=lambda env: torch.arange(4) == env.common_step_counter - 2),
    }
    env_cfg.rewards = {"probe": RewardTermCfg(func=probe("reward", zeros), weight=1.0)}
    env_cfg.metrics = {"probe": MetricsTermCfg(func=probe("metric", zeros))}
    put = EventTermCfg(func=lambda env, ids: put_cart(env, 0.3, ids), mode="reset")
    env_cfg.events = {
        "put": put,
        "reset": EventTermCfg(func=probe("reset event"), mode="reset"),
        "probe": EventTermCfg(func=probe("event"), mode="step"),
        "rub": EventTermCfg(func=rub, mode="step"),
    }
    cfg = CounterCfg(resampling_time_range=(100.0, 100.0))
    cfg.build = lambda env: Command(cfg, env)  # type: ignore[method-assign]
    env_cfg.commands = {"n": cfg}
    env_cfg.curriculum = {"probe": CurriculumTermCfg(func=probe("curriculum"))}
    add_observation(env_cfg, "probe", observe)
    env = ManagerBasedRlEnv(env_cfg)
    for action in (0.2, 0.5):
        env.step(torch.full((4, 1), action))
    apply_action = env.action_manager.apply_action
    old = read(env).clone()

    def apply() -> None:
        apply_action()
        env.scene.write_data_to_sim()
        seen["physics"] = read(env).clone()

    env.action_manager.apply_action = apply
    seen.clear()
    env.step(torch.full((4, 1), 0.8))
    assert (seen["curriculum"] != old)[:2].all(), "the quantity did not change"
    for part, values in seen.items():
        wanted = seen["curriculum"] if part in new else old
        assert values[0] == wanted[0], part
        if part in next_episode:
            assert values[1] != seen["curriculum"][1], part
        else:
            assert values[1] == wanted[1], part
    assert set(seen) == {"physics", *TERMS, *LATER}
