"""Velocity commands: what is drawn, how headings are followed, what is logged and saved."""

from __future__ import annotations

import copy
import math

import mujoco
import pytest
import torch

from manyworlds.entity import EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import CurriculumTermCfg, TerminationTermCfg
from manyworlds.scene import SceneCfg
from manyworlds.sim import MujocoCfg, SimulationCfg
from manyworlds.tasks.velocity.mdp import (
    UniformVelocityCommand,
    UniformVelocityCommandCfg,
    commands_vel,
    terrain_levels_vel,
)
from manyworlds.terrains import TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import flat
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
    torch.testing.assert_close(world, term.vel_command_w[:, :2].double(), rtol=1e-5, atol=1e-5)


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


def floating_box(num_envs: int, **fields) -> ManagerBasedRlEnv:
    """Make an environment of a box without weight, which moves as its velocity says."""
    xml = "<mujoco><worldbody><body><freejoint/><geom size='.1 .1 .1' type='box'/></body>"
    xml += "</worldbody></mujoco>"
    box = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 2.0)),
    )
    scene = SceneCfg(
        num_envs=num_envs, entities={"robot": box}, terrain=fields.pop("terrain", None)
    )
    fields = {
        "decimation": 2,
        "episode_length_s": 10.0,
        "sim": SimulationCfg(mujoco=MujocoCfg(timestep=0.005, gravity=(0.0, 0.0, 0.0))),
        "commands": {"twist": cfg(resampling_time_range=(100.0, 100.0))},
        "terminations": {"time_out": TerminationTermCfg(func=mdp.time_out, time_out=True)},
        **fields,
    }
    return ManagerBasedRlEnv(ManagerBasedRlEnvCfg(scene=scene, seed=3, **fields))


def follow(env: ManagerBasedRlEnv, share: torch.Tensor) -> None:
    """Step, with each robot at a share of the commanded velocity."""
    x, y, turning = (share.unsqueeze(1) * env.command_manager.get_command("twist")).unbind(1)
    zero = torch.zeros_like(x)
    velocity = torch.stack([x, y, zero, zero, zero, turning], dim=1)
    env.scene["robot"].write_root_link_velocity_b_to_sim(velocity)
    env.step(torch.zeros(env.num_envs, 0))


@pytest.mark.parametrize(("episode_s", "command_s"), [(2.0, 1.0), (4.0, 1.0), (1.0, 10.0)])
def test_errors_are_means_over_the_time_of_an_episode(episode_s, command_s):
    """Log the errors of robots that stand still, however long episodes and commands are."""
    ranges = UniformVelocityCommandCfg.Ranges((0.6, 0.6), (-0.8, -0.8), (0.5, 0.5))
    twist = cfg(ranges=ranges, resampling_time_range=(command_s, command_s))
    env = floating_box(2, commands={"twist": twist}, episode_length_s=episode_s)
    for _ in range(2 * env.max_episode_length):
        *_, extras = env.step(torch.zeros(2, 0))
    log = extras["log"]
    assert log["Metrics/twist/error_vel_xy"].item() == pytest.approx(1.0, abs=1e-5)
    assert log["Metrics/twist/error_vel_yaw"].item() == pytest.approx(0.5, abs=1e-5)


def test_errors_of_episodes_are_averaged_over_the_worlds_that_end():
    """Log the means of finished episodes, and then begin at zero."""
    env, term = built(3)
    shake(env, 1)
    data, command, mean = env.scene["robot"].data, term.command, torch.zeros(2, 3)
    for values in (*term.metrics.values(), term._measured):
        values.zero_()
    for share in (1.0, 0.5, 1 / 3):
        command[:, 0] += 1.0
        linear = (command[:, :2] - data.root_link_lin_vel_b[:, :2]).norm(dim=1)
        turning = (command[:, 2] - data.root_link_ang_vel_b[:, 2]).abs()
        mean.lerp_(torch.stack([linear, turning]), share)
        term.compute(dt=0.01)
    log = env.command_manager.reset(torch.tensor([0, 2]))
    expected = mean[:, [0, 2]].mean(dim=1)
    for name, value in zip(("error_vel_xy", "error_vel_yaw"), expected, strict=True):
        torch.testing.assert_close(log[f"Metrics/twist/{name}"], value, rtol=1e-5, atol=1e-6)
    assert term.metrics["error_vel_xy"].count_nonzero() == 1


def test_the_way_follows_changes_turns_and_stops_of_the_command():
    """Add up the commanded way and the robot's way along it, until the episode ends."""
    generator = TerrainGeneratorCfg(
        size=(8.0, 8.0), num_rows=1, num_cols=1, seed=1, sub_terrains={"flat": flat()}
    )
    terrain = TerrainEntityCfg(terrain_type="generator", terrain_generator=generator)
    env = floating_box(4, terrain=terrain)
    term = env.command_manager.get_term("twist")
    assert isinstance(term, UniformVelocityCommand)
    share = torch.tensor([1.0, 1.0, 0.5, -1.0])
    speeds = {0: (0.4, 0.3, 2.0), 20: (-2.0, 0.0, 0.0), 40: (0.0, 0.0, 1.0)}
    for step in range(60):
        if step in speeds:
            term.vel_command_b[:] = torch.tensor(speeds[step])
        follow(env, share)
    way = 20 * env.step_dt * (0.5 + 2.0)
    assert term.commanded_way.tolist() == pytest.approx([way] * 4, rel=1e-4)
    assert term.progress.tolist() == pytest.approx((way * share).tolist(), rel=1e-3)
    saved = term.progress.clone()
    env.reset(env_ids=torch.tensor([1]))
    assert term.progress[1] == term.commanded_way[1] == 0.0 and term.progress[0] == saved[0]
    follow(env, 0.0 * share)
    assert term.progress[1] == 0.0


def test_levels_follow_the_commanded_way():
    """Move up who follows slow, turning and changing commands; down who does not, or falls."""
    generator = TerrainGeneratorCfg(
        size=(8.0, 8.0), num_rows=6, num_cols=1, seed=1, sub_terrains={"flat": flat()}
    )
    fallen = torch.zeros(8, dtype=torch.bool)
    env = floating_box(
        8,
        terrain=TerrainEntityCfg(terrain_type="generator", terrain_generator=generator),
        episode_length_s=4.0,
        terminations={
            "time_out": TerminationTermCfg(func=mdp.time_out, time_out=True),
            "fallen": TerminationTermCfg(func=lambda env: fallen),
        },
        curriculum={
            "levels": CurriculumTermCfg(func=terrain_levels_vel, params={"command_name": "twist"})
        },
    )
    term, terrain = env.command_manager.get_term("twist"), env.scene.terrain
    assert isinstance(term, UniformVelocityCommand) and terrain is not None
    terrain.terrain_levels[:] = 2
    command = torch.tensor(
        [
            [0.2, 0.0, 0.0],  # slow
            [1.0, 0.0, 3.0],  # in circles
            [0.5, 0.0, 0.0],  # there and back, see below
            [0.0, 0.0, 0.0],  # stands, as told
            [0.5, 0.0, 0.0],  # stands, against its command
            [0.5, 0.0, 1.0],  # 60 %
            [1.0, 0.0, 0.0],  # follows, but falls in the middle of the first half
            [1.5, 0.0, 0.0],  # leaves the cell at 80 % of its command
        ]
    )
    share = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0, 0.6, 1.0, 0.8])
    for step in range(env.max_episode_length):
        if step == 0:
            term.vel_command_b[:] = command
        if step == 200:
            term.vel_command_b[2, 0] = -0.5
        fallen[6] = step == 100
        follow(env, share)
    assert terrain.terrain_levels.tolist() == [3, 3, 3, 2, 1, 2, 1, 3]
    # The way to the new cell is none of the next episode.
    assert term.commanded_way[share != 0.0].count_nonzero() == 1  # of the one that fell
    follow(env, 0.0 * share)
    assert term.progress[term.commanded_way < 0.1].abs().max() < 1e-3


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


def test_a_state_of_an_earlier_version_loads():
    """Load a state with two components of velocity in the world, and without a mode."""
    _, term = built(5, rel_world_envs=0.5)
    state = term.state_dict()
    expected = term.vel_command_w[:, :2].clone()
    state["vel_command_w"] = expected.clone()
    del state["is_forward_env"]
    _, other = built(5, rel_world_envs=0.5)
    other.load_state_dict(state)
    assert torch.equal(other.vel_command_w[:, :2], expected)
    assert other.vel_command_w.shape == (5, 3) and not other.is_forward_env.any()


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
