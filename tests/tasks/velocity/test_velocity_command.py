"""Velocity commands: what is drawn, how headings are followed, what is logged and saved."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from manyworlds.tasks.velocity.mdp import UniformVelocityCommandCfg, commands_vel
from manyworlds.utils.math import wrap_to_pi
from tests.envs.mdp.robot import is_uniform, make_env, shake

RANGES = UniformVelocityCommandCfg.Ranges(
    lin_vel_x=(-1.0, 2.0), lin_vel_y=(-0.5, 0.5), ang_vel_z=(0.2, 0.8), heading=(-1.0, 3.0)
)


def cfg(**fields) -> UniformVelocityCommandCfg:
    """Configure a command of the robot."""
    fields = {"resampling_time_range": (5.0, 5.0), "ranges": copy.deepcopy(RANGES), **fields}
    return UniformVelocityCommandCfg(entity_name="robot", **fields)


def built(num_envs: int = 4, **fields):
    """Make an environment with the command, and return both."""
    env = make_env(num_envs, commands={"twist": cfg(**fields)})
    return env, env.command_manager.get_term("twist")


def test_draws_are_uniform_and_last_as_long_as_asked():
    """Draw each component within its range, and again only when the time is over."""
    env, term = built(500, resampling_time_range=(0.02, 0.06))
    assert term.command.shape == (500, 3)
    seen = [term.command.clone()]
    for _ in range(8):
        before, left, count = term.command.clone(), term.time_left.clone(), term.command_counter
        count = count.clone()
        env.step(torch.zeros(500, 2))
        expired = left - env.step_dt <= 0
        assert torch.equal(term.command_counter - count, expired.long())
        assert torch.equal((term.command != before).any(dim=1), expired)
        seen.append(term.command[expired])
    drawn = torch.cat(seen)
    for column, bounds in enumerate((RANGES.lin_vel_x, RANGES.lin_vel_y, RANGES.ang_vel_z)):
        assert is_uniform(drawn[:, column], *bounds)


def test_kinds_have_their_shares():
    """Let some worlds stand still, and others walk straight ahead."""
    _, term = built(4000, rel_standing_envs=0.25, rel_forward_envs=0.5)
    x, y, turning = term.command.unbind(1)
    standing = (x == 0) & (y == 0) & (turning == 0)
    ahead = (x > 0) & (y == 0) & (turning == 0)
    assert abs(standing.float().mean() - 0.25) < 0.03
    assert abs(ahead.float().mean() - 0.75 * 0.5) < 0.03
    assert (y[~standing & ~ahead] != 0).all()
    assert (term.time_left == 5.0).all()


def test_headings_are_followed_in_proportion_within_the_range_of_turning():
    """Turn towards the heading by the shorter way, no faster than turning is drawn."""
    env, term = built(200, heading_command=True, heading_control_stiffness=0.7)
    shake(env, 3)
    heading = env.scene["robot"].data.heading_w
    term.compute(dt=0.0)
    error = wrap_to_pi(term.heading_target - heading)
    expected = (0.7 * error).clamp(0.2, 0.8)
    torch.testing.assert_close(term.command[:, 2], expected)
    assert is_uniform(term.heading_target, -1.0, 3.0)


def test_world_commands_point_the_same_way_however_the_root_turns():
    """Turn a command along the world's axes into the root's frame."""
    env, term = built(50, rel_world_envs=1.0)
    shake(env, 3)
    term.compute(dt=0.0)
    heading = env.scene["robot"].data.heading_w.double()
    x, y, _ = term.command.double().unbind(1)
    world = torch.stack(
        [heading.cos() * x - heading.sin() * y, heading.sin() * x + heading.cos() * y], dim=1
    )
    torch.testing.assert_close(world, term.vel_command_w.double(), rtol=1e-5, atol=1e-5)


def test_partial_updates_leave_other_worlds_alone():
    """Follow headings in the worlds named only; no time goes by."""
    _, term = built(6, heading_command=True)
    before, left = term.command.clone(), term.time_left.clone()
    term.heading_target += 1.0
    term.compute(dt=0.5, env_ids=torch.tensor([1, 4]))
    changed = (term.command != before).any(dim=1)
    assert changed.tolist() == [False, True, False, False, True, False]
    assert torch.equal(term.time_left, left)


def test_speed_follows_the_command():
    """Add up linear and turning speed, also after a command was written by hand."""
    _, term = built(2)
    term.command[:] = torch.tensor([[3.0, 4.0, -2.0], [0.0, 0.0, 0.5]])
    assert term.speed.tolist() == [7.0, 0.5]
    term.command[1] = 0.0
    assert term.speed.tolist() == [7.0, 0.0]


def test_metrics_add_up_errors_relative_to_the_time_of_a_command():
    """Log mean errors of linear velocity and turning of finished episodes, then begin at zero."""
    env, term = built(3)
    shake(env, 1)
    for values in term.metrics.values():
        values.zero_()
    data, command = env.scene["robot"].data, term.command.clone()
    linear = (command[:, :2] - data.root_link_lin_vel_b[:, :2]).norm(dim=1)
    turning = (command[:, 2] - data.root_link_ang_vel_b[:, 2]).abs()
    term.compute(dt=0.01)
    term.compute(dt=0.01)
    log = env.command_manager.reset(torch.tensor([0, 2]))
    share = 2 * env.step_dt / 5.0
    torch.testing.assert_close(
        log["Metrics/twist/error_vel_xy"], share * linear[[0, 2]].mean(), rtol=1e-5, atol=1e-6
    )
    torch.testing.assert_close(
        log["Metrics/twist/error_vel_yaw"], share * turning[[0, 2]].mean(), rtol=1e-5, atol=1e-6
    )
    assert term.metrics["error_vel_xy"].count_nonzero() == 1


def test_episodes_can_begin_in_motion():
    """Give the root the commanded velocity at the beginning of an episode."""
    env, term = built(20, init_velocity_prob=1.0, heading_command=True)
    shake(env, 2)
    ids = torch.tensor([3, 7])
    before = env.scene["robot"].data.root_link_vel_w.clone()
    env.reset(env_ids=ids)
    data = env.scene["robot"].data
    expected = torch.zeros(2, 6)
    expected[:, :2], expected[:, 5] = term.command[ids, :2], term.command[ids, 2]
    actual = torch.cat([data.root_link_lin_vel_b, data.root_link_ang_vel_b], dim=1)[ids]
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    others = torch.ones(20, dtype=torch.bool)
    others[ids] = False
    assert torch.equal(data.root_link_vel_w[others], before[others])


def test_state_holds_commands_and_the_ranges_that_curricula_changed():
    """Go on with the same commands after a restart, drawn from the same ranges."""
    env, term = built(5, heading_command=True, rel_standing_envs=0.5)
    term.cfg.ranges.lin_vel_x = (4.0, 5.0)
    state = term.state_dict()
    _, other = built(5, heading_command=True, rel_standing_envs=0.5)
    other.load_state_dict(state)
    assert torch.equal(other.command, term.command)
    assert torch.equal(other.is_standing_env, term.is_standing_env)
    assert torch.equal(other.is_heading_env, term.is_heading_env)
    other.cfg.rel_standing_envs = 0.0
    other.reset(torch.arange(5))
    assert ((other.vel_command_b[:, 0] >= 4.0) & (other.vel_command_b[:, 0] <= 5.0)).all()
    assert env.command_manager.get_term_cfg("twist") is term.cfg


def test_curricula_change_how_many_stand():
    """Let half of the worlds stand from a stage on, and go on so after a restart."""
    env, term = built(2000)
    stages = [{"step": 0, "rel_standing_envs": 0.0}, {"step": 10, "rel_standing_envs": 0.5}]
    for step, share in ((9, 0.0), (10, 0.5)):
        env.common_step_counter = step
        commands_vel(env, torch.arange(2000), "twist", stages)
        term.reset(torch.arange(2000))
        assert abs(term.is_standing_env.float().mean() - share) < 0.05
    _, other = built(2000)
    other.load_state_dict(term.state_dict())
    other.reset(torch.arange(2000))
    assert abs(other.is_standing_env.float().mean() - 0.5) < 0.05


def test_commands_work_within_inference_mode():
    """Draw in inference mode, and afterwards outside of it."""
    env, term = built(4, resampling_time_range=(0.01, 0.01), rel_forward_envs=0.5)
    with torch.inference_mode():
        env.step(torch.zeros(4, 2))
    env.step(torch.zeros(4, 2))
    term.load_state_dict(term.state_dict())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"heading_command": True, "ranges": UniformVelocityCommandCfg.Ranges((0, 1), (0, 1),
          (0, 1))}, "heading_command=True, but ranges.heading is None"),
        ({"rel_standing_envs": 1.5}, "rel_standing_envs is 1.5"),
        ({"init_velocity_prob": -0.1}, "init_velocity_prob is -0.1"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(fields, message):
    """Say which field is wrong, when the config is made."""
    with pytest.raises(ValueError, match=message):
        cfg(**fields)


def test_fixed_bases_are_refused():
    """Say that a fixed base follows no velocity."""
    with pytest.raises(ValueError, match="'robot', whose base is fixed"):
        make_env(floating=False, commands={"twist": cfg()})


def test_arrows_point_where_the_command_does():
    """Draw the command over the root, in the world's frame."""
    env, term = built(2, debug_vis=True)
    shake(env, 2)
    arrows = []

    class Pen:
        def get_env_indices(self, num_envs):
            return [1]

        def add_arrow(self, start, end, color, width):
            arrows.append(end - start)

    env.command_manager.debug_vis(Pen())
    assert len(arrows) == 4
    heading = env.scene["robot"].data.heading_w[1].item()
    x, y, turning = term.command[1].tolist()
    assert arrows[0][0] == pytest.approx(0.5 * (math.cos(heading) * x - math.sin(heading) * y))
    assert arrows[0][1] == pytest.approx(0.5 * (math.sin(heading) * x + math.cos(heading) * y))
    assert arrows[1].tolist() == pytest.approx([0.0, 0.0, 0.5 * turning])
