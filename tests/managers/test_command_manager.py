"""Commands: draws, timers, metrics, saved state."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import CommandManager, CommandTerm, CommandTermCfg, NullCommandManager


@dataclass(kw_only=True)
class NumberCfg(CommandTermCfg):
    """Asks for a number."""

    cls: type | None = None

    def build(self, env):
        return (self.cls or Number)(self, env)


class Number(CommandTerm):
    """Draws a number per world, and counts updates."""

    state_attributes = (*CommandTerm.state_attributes, "number", "updates")

    def __init__(self, cfg, env):
        super().__init__(cfg, env)
        self.number = torch.zeros(env.num_envs, 1)
        self.updates = torch.zeros(env.num_envs)
        self.metrics["error"] = torch.zeros(env.num_envs)

    @property
    def command(self):
        return self.number

    def _resample_command(self, env_ids):
        self.number[env_ids] = torch.rand(len(env_ids), 1)

    def _update_command(self, env_ids):
        self.updates[slice(None) if env_ids is None else env_ids] += 1

    def _update_metrics(self):
        self.metrics["error"] += 1.0


def manager(env, low: float = 1.0, high: float = 1.0) -> CommandManager:
    """Make a manager of one command, all of whose worlds have begun."""
    commands = CommandManager(
        {"n": NumberCfg(resampling_time_range=(low, high)), "none": None}, env
    )
    commands.reset(torch.arange(4))
    return commands


def test_a_command_is_drawn_when_its_time_is_over(env):
    """Draw for each world on its own, and count the draws of the episode."""
    commands = manager(env)
    term = commands.get_term("n")
    assert term.command_counter.tolist() == [1, 1, 1, 1]
    before = commands.get_command("n").clone()
    commands.compute(torch.tensor([0.0, 0.4, 1.0, 2.0]))
    changed = (commands.get_command("n") != before).flatten().tolist()
    assert changed == [False, False, True, True]
    assert term.time_left.tolist() == pytest.approx([1.0, 0.6, 1.0, 1.0])
    assert term.command_counter.tolist() == [1, 1, 2, 2]


def test_time_between_draws_is_within_its_range(env):
    """Draw intervals of every world from the range."""
    term = manager(env, 2.0, 3.0).get_term("n")
    assert ((term.time_left >= 2.0) & (term.time_left <= 3.0)).all()
    assert len(term.time_left.unique()) == 4


def test_a_reset_logs_and_clears_metrics_of_its_worlds(env):
    """Log the mean over worlds as a tensor, and restart it only there."""
    commands = manager(env)
    commands.compute(0.1)
    commands.get_term("n").metrics["error"][:] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    log = commands.reset(torch.tensor([1, 3]))
    assert isinstance(log["Metrics/n/error"], torch.Tensor) and log["Metrics/n/error"] == 3.0
    assert commands.get_term("n").metrics["error"].tolist() == [1.0, 0.0, 3.0, 0.0]


def test_an_update_after_a_partial_reset_touches_no_other_world(env):
    """Update the worlds named; leave timers and metrics of all as they are."""
    commands = manager(env)
    term = commands.get_term("n")
    commands.compute(0.0, env_ids=torch.tensor([2]))
    assert term.updates.tolist() == [0, 0, 1, 0]
    assert not term.metrics["error"].any() and (term.time_left == 1.0).all()


def test_a_command_stands_still_for_worlds_just_reset(env_cfg):
    """Let time go by in a step, except in the worlds that the step reset."""
    env_cfg.commands = {"n": NumberCfg(resampling_time_range=(1.0, 1.0))}
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[1] = env.max_episode_length - 1
    extras = env.step(torch.zeros(4, 1))[-1]
    time_left = env.command_manager.get_term("n").time_left
    assert time_left.tolist() == pytest.approx([0.95, 1.0, 0.95, 0.95])
    assert "Metrics/n/error" in extras["log"]


def test_mistakes_are_named(env):
    """Refuse an update without worlds, a range upside down, and unknown names."""

    class Old(Number):
        def _update_command(self):
            pass

    with pytest.raises(TypeError, match="Old._update_command must accept env_ids"):
        CommandManager({"n": NumberCfg(resampling_time_range=(1.0, 1.0), cls=Old)}, env)
    with pytest.raises(
        ValueError, match=r"^CommandManager term 'n' .*resampling_time_range is \(2.0, 1.0\) s"
    ):
        CommandManager({"n": NumberCfg(resampling_time_range=(2.0, 1.0))}, env)
    with pytest.raises(ValueError, match="has no term 'x'. Available: n."):
        manager(env).get_command("x")


def test_commands_go_on_from_a_saved_state(env):
    """Restore timers, counters, metrics and the term's own state."""
    commands = manager(env, 0.1, 1.0)
    commands.compute(0.3)
    saved = commands.state_dict()
    expected = repr(saved)
    commands.reset(torch.arange(4))
    commands.load_state_dict(saved)
    assert repr(commands.state_dict()) == expected


def test_what_viewers_ask_reaches_the_terms(env):
    """Pass on pauses, controls and resets; show values of one world."""
    commands = manager(env)
    seen = []
    term = commands.get_term("n")
    term.create_gui = lambda name, *args: seen.append(name)
    term.on_viewer_pause = seen.append
    commands.create_gui(object(), lambda: 0)
    commands.on_viewer_pause(True)
    assert seen == ["n", True]
    assert commands.apply_gui_reset(torch.tensor([0])) is False
    assert "(1.0, 1.0)" in str(commands)
    assert commands.get_active_iterable_terms(1) == [("n", term.number[1].tolist())]


def test_the_empty_manager_does_nothing():
    """Run without terms and without an environment."""
    null = NullCommandManager()
    null.compute(0.1)
    assert null.reset(torch.arange(2)) == {} and null.active_terms == []
    assert "NullCommandManager" in str(null)
    assert null.get_active_iterable_terms(0) == [] and null.state_dict() is not None
    with pytest.raises(ValueError, match="has no term 'x'. Available: none"):
        null.get_command("x")


def test_a_saved_environment_goes_on_with_its_commands(env_cfg):
    """Draw the same commands at the same times in a fresh environment."""
    env_cfg.commands = {"n": NumberCfg(resampling_time_range=(0.1, 0.3))}
    env = ManagerBasedRlEnv(env_cfg)
    env.episode_length_buf[1] = 195
    for _ in range(3):
        env.step(torch.zeros(4, 1))
    saved = env.state_dict()
    env_cfg.seed = 99
    fresh = ManagerBasedRlEnv(env_cfg)
    fresh.load_state_dict(saved)
    draws = 0
    for _ in range(8):
        before = env.command_manager.get_command("n").clone()
        for one in (env, fresh):
            torch.manual_seed(len(before) + draws)  # both draw from one generator
            one.step(torch.zeros(4, 1))
        after = [one.command_manager.get_command("n") for one in (env, fresh)]
        assert torch.equal(*after)
        draws += int((after[0] != before).sum())
    assert draws > 4


class _Page:
    """Page that holds checkboxes."""

    def __init__(self):
        self.gui, self.boxes = self, []

    def add_checkbox(self, label, initial_value):
        box = SimpleNamespace(label=label, value=initial_value, updated=[])
        box.on_update = box.updated.append
        self.boxes.append(box)
        return box

    def click(self, box, value):
        box.value = value
        for update in box.updated:
            update(SimpleNamespace(client=object()))


class Drawn(Number):
    """Draws itself by adding its name to a list."""

    def _debug_vis_impl(self, visualizer):
        visualizer.append("drawn")


@pytest.mark.parametrize("debug_vis", [False, True])
def test_drawings_are_switched_on_a_page(env, debug_vis):
    """Add a checkbox for each command that draws, which shows and hides it, and edit no config."""
    cfg = NumberCfg(resampling_time_range=(1.0, 1.0), cls=Drawn, debug_vis=debug_vis)
    plain = NumberCfg(resampling_time_range=(1.0, 1.0), debug_vis=True)
    commands, page, changes, drawn = CommandManager({"a": cfg, "b": plain}, env), _Page(), [], []
    commands.create_debug_vis_gui(page, lambda: changes.append(1))
    (box,) = page.boxes
    assert "'a'" in box.label and box.value is debug_vis
    for on in (not debug_vis, debug_vis):
        page.click(box, on)
        drawn.clear()
        commands.debug_vis(drawn)
        assert drawn == ["drawn"] * on
    assert changes == [1, 1] and cfg.debug_vis is debug_vis
    NullCommandManager().create_debug_vis_gui(page)
    assert len(page.boxes) == 1
