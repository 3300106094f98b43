"""Observations, terminations, curricula and ground normals against values worked out by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch

from manyworlds.sensor import ObjRef, RayCastSensor, RayCastSensorCfg
from manyworlds.tasks.velocity import mdp
from manyworlds.terrains import TerrainEntity, TerrainEntityCfg, TerrainGeneratorCfg
from manyworlds.terrains.config import flat, random_rough
from tests.tasks.velocity.stubs import contacts, entity, stub_env

GENERATOR = TerrainGeneratorCfg(
    size=(8.0, 6.0),
    num_rows=4,
    border_width=2.0,
    curriculum=True,
    seed=1,
    sub_terrains={"flat": flat(proportion=0.5), "rough": random_rough(proportion=0.5)},
)


def test_observations_show_the_feet():
    """Show heights, flight times, contacts, and forces on a logarithmic scale."""
    feet = contacts(
        found=[[0.0, 3.0]],
        force=[[[0.0, math.e - 1.0, 1.0 - math.e], [1.0, 0.0, 0.0]]],
        current_air_time=[[0.5, 0.0]],
    )
    heights = SimpleNamespace(data=SimpleNamespace(heights=torch.tensor([[0.1, 0.2]])))
    env = stub_env(feet=feet, heights=heights)
    assert mdp.foot_height(env, "heights").tolist() == heights.data.heights.tolist()
    assert mdp.foot_air_time(env, "feet").tolist() == [[0.5, 0.0]]
    assert mdp.foot_contact(env, "feet").tolist() == [[0.0, 1.0]]
    expected = [[0.0, 1.0, -1.0, math.log(2.0), 0.0, 0.0]]
    torch.testing.assert_close(mdp.foot_contact_forces(env, "feet"), torch.tensor(expected))


def test_illegal_contacts_are_those_with_force():
    """End episodes by forces above the threshold, now or within the history, or by any contact."""
    env = stub_env(touch=contacts(found=[[0.0, 1.0], [0.0, 0.0]]))
    assert mdp.illegal_contact(env, "touch").tolist() == [True, False]
    force = torch.tensor([[[6.0, 8.1, 0.0], [0.0, 0.0, 0.0]], [[6.0, 7.9, 0.0], [9.0, 0.0, 0.0]]])
    env.scene["touch"].data.force = force
    assert mdp.illegal_contact(env, "touch").tolist() == [True, False]
    env.scene["touch"].data.force_history = torch.stack([0 * force, 2 * force], dim=2)
    assert mdp.illegal_contact(env, "touch").tolist() == [True, True]
    assert mdp.illegal_contact(env, "touch", force_threshold=20.0).tolist() == [True, False]


def on_terrain(position, num_envs: int = 4, **env):
    """Put robots at positions on the terrain."""
    terrain = TerrainEntity(
        TerrainEntityCfg(terrain_type="generator", terrain_generator=GENERATOR, num_envs=num_envs),
        "cpu",
    )
    stub = stub_env([[1.0, 0.0, 0.0]] * num_envs, robot=entity(root_link_pos_w=position))
    stub.scene.terrain, stub.scene.env_origins = terrain, terrain.env_origins
    for name, value in env.items():
        setattr(stub, name, value)
    return stub, terrain


def test_terrain_ends_behind_its_border():
    """End episodes close to the end of the border, at 4 x 8 / 2 + 2 m and 2 x 6 / 2 + 2 m."""
    position = [[17.6, 0.0, 0.0], [-17.8, 0.0, 0.0], [0.0, 7.6, 9.0], [0.0, -7.8, 0.0]]
    env, _ = on_terrain(position)
    assert mdp.out_of_terrain_bounds(env).tolist() == [False, True, False, True]
    assert mdp.out_of_terrain_bounds(env, margin=0.5).tolist() == [True] * 4
    # A plane has no end, whatever generator its config still names.
    plane = TerrainEntityCfg(terrain_type="plane", terrain_generator=GENERATOR, num_envs=4)
    for env.scene.terrain in (TerrainEntity(plane, "cpu"), None):
        assert not mdp.out_of_terrain_bounds(env).any()
        assert not mdp.terrain_edge_reached(env).any()


def test_edges_of_cells_are_measured_from_the_origin():
    """End episodes near the edge of a cell of 8 m x 6 m."""
    env, terrain = on_terrain(torch.zeros(4, 3))
    offset = torch.tensor([[3.7, 0.0, 0.0], [-3.9, 0.0, 0.0], [0.0, 2.8, 5.0], [0.0, -2.9, 0.0]])
    env.scene["robot"].data.root_link_pos_w = terrain.env_origins + offset
    assert mdp.terrain_edge_reached(env).tolist() == [False, True, False, True]
    assert mdp.terrain_edge_reached(env, threshold_fraction=0.5).tolist() == [True] * 4
    terrain.cfg.terrain_generator = None
    assert not mdp.terrain_edge_reached(env).any()


def test_robots_that_do_not_advance_stall():
    """End episodes of robots that stand, unless little is commanded; a reset begins again."""
    velocity = torch.tensor([[0.0, 0.0, 0.0], [0.4, 0.5, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    command = [[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.1, 0.1, 1.0], [0.0, 1.0, 0.0]]
    env = stub_env(command, robot=entity(root_link_lin_vel_b=velocity))
    env.num_envs, env.device, env.step_dt = 4, "cpu", 0.02
    progress = mdp.command_progress(env, "twist")
    torch.testing.assert_close(progress, torch.tensor([0.0, 0.8, 0.0, 0.0]))
    velocity[3, 1] = -3.0
    assert mdp.command_progress(env, "twist")[3] == -1.0
    term = mdp.stalled(None, env)
    ends = [term(env, 0.15, "twist").tolist() for _ in range(61)]
    assert ends[-1] == [True, False, False, True] and not any(ends[10])
    # 0.5 falls to 0.15 in ln(0.5 / 0.15) = 1.2 s; to the other direction, in ln(1.5 / 1.15) s.
    assert [sum(not end[i] for end in ends) for i in (0, 3)] == [59, 13]
    term.reset(torch.tensor([0]))
    assert term(env, 0.15, "twist").tolist() == [False, False, False, True]
    assert not term(env, -1.5, "twist").any()


def test_turn_error_is_that_of_yaw_alone():
    """Measure the yaw rate against the command, whatever the roll and pitch rates."""
    command = [[0.5, 0.0, 0.6], [0.0, 0.0, -0.4]]
    rates = torch.tensor([[3.0, -2.0, 0.1], [0.0, 1.0, 0.2]])
    env = stub_env(command, robot=entity(root_link_ang_vel_b=rates))
    torch.testing.assert_close(mdp.turn_error(env, "twist"), torch.tensor([0.5, 0.6]))


def test_levels_rise_and_fall_with_the_distance_walked():
    """Move up who left the cell, down who walked less than half as far as told, no others."""
    env, terrain = on_terrain(torch.zeros(4, 3), max_episode_length_s=6.0)
    terrain.terrain_levels[:] = torch.tensor([1, 1, 1, 2])
    terrain.terrain_types[:] = torch.tensor([0, 1, 1, 0])
    offset = torch.tensor([[4.1, 0.0, 0.0], [2.9, 0.0, 9.0], [0.0, 3.1, 0.0], [9.0, 0.0, 0.0]])
    env.scene["robot"].data.root_link_pos_w = terrain.env_origins + offset
    log = mdp.terrain_levels_vel(env, torch.tensor([0, 1, 2]), "twist")
    assert terrain.terrain_levels.tolist() == [2, 0, 1, 2]
    assert {name: value.item() for name, value in log.items()} == {
        "mean": 1.25,
        "max": 2.0,
        "flat": 2.0,
        "rough": 0.5,
    }
    env.scene.terrain = None
    assert mdp.terrain_levels_vel(env, torch.tensor([0]), "twist") == {}


def test_commands_get_faster_by_stages():
    """Set what each stage says once its step is reached; the rest stays."""
    ranges = mdp.UniformVelocityCommandCfg.Ranges((0.0, 1.0), (-0.5, 0.5), (-1.0, 1.0))
    env = stub_env()
    twist = SimpleNamespace(ranges=ranges, rel_standing_envs=0.0)
    env.command_manager.get_term_cfg = lambda name: twist
    stages = [
        {"step": 0, "lin_vel_x": (-1.0, 1.0)},
        {"step": 10, "lin_vel_x": (-2.0, 2.0), "ang_vel_z": (-3.0, 3.0), "lin_vel_y": None},
        {"step": 20, "lin_vel_x": (-4.0, 4.0), "rel_standing_envs": 0.2},
    ]
    for step, x, turning, standing in (
        (9, 1.0, 1.0, 0.0),
        (10, 2.0, 3.0, 0.0),
        (25, 4.0, 3.0, 0.2),
    ):
        env.common_step_counter = step
        log = mdp.commands_vel(env, torch.tensor([0]), "twist", stages)
        assert ranges.lin_vel_x == (-x, x) and ranges.ang_vel_z == (-turning, turning)
        assert ranges.lin_vel_y == (-0.5, 0.5) and twist.rel_standing_envs == standing
        assert log["lin_vel_x_max"] == x and log["ang_vel_z_min"] == -turning
        assert len(log) == 6


def test_normals_are_those_of_planes_through_the_points():
    """Fit z = a x + b y + c, far from the origin, too, and ignore points that do not count."""
    xy = 4.0 * torch.rand(5, 20, 2) + torch.tensor([100.0, -50.0])
    slope = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, -0.3], [1.0, 2.0], [-0.2, 0.1]])
    z = (xy * slope[:, None]).sum(dim=-1, keepdim=True) + 3.0
    points, valid = torch.cat([xy, z], dim=-1), torch.rand(5, 20) < 0.8
    points[~valid] = torch.inf
    normal = mdp.fit_terrain_normal(points, valid)
    expected = torch.cat([-slope, torch.ones(5, 1)], dim=1)
    expected /= expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(normal, expected, rtol=1e-3, atol=1e-3)


def test_too_few_points_mean_flat_ground():
    """Return the vertical where points are none, one, or on a line."""
    line = torch.arange(6.0)[:, None] * torch.tensor([1.0, 2.0, 3.0])
    points = line.expand(3, -1, -1).clone()
    valid = torch.ones(3, 6, dtype=torch.bool)
    valid[0], valid[1, 1:] = False, False
    up = torch.tensor([0.0, 0.0, 1.0]).expand(3, -1)
    torch.testing.assert_close(mdp.fit_terrain_normal(points, valid), up)


def test_normals_come_from_what_rays_hit():
    """Take an even pick of each sensor's hits."""

    class Scan(RayCastSensor):
        num_rays = 121

    scan = Scan(RayCastSensorCfg(name="scan", frame=ObjRef(type="body", name="world")))
    x = torch.linspace(0.0, 1.0, 121)
    hits = torch.stack([x, (40 * x).sin(), 0.3 * x], dim=1).unsqueeze(0)
    hits[:, 8] = 1e9
    distances = torch.ones(1, 121)
    distances[:, 8] = -1.0
    scan._cache = SimpleNamespace(hit_pos_w=hits, distances=distances)
    env = stub_env(scan=scan)
    normal = mdp.terrain_normal_from_sensors(env, ("scan",))
    expected = torch.tensor([[-0.3, 0.0, 1.0]]) / math.hypot(0.3, 1.0)
    torch.testing.assert_close(normal, expected, rtol=1e-4, atol=1e-4)
