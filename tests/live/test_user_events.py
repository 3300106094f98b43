"""Start states and pushes that were recorded in one world, in others."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from manyworlds.live import take_snapshot
from manyworlds.live.edits import START_STATES, AddDisturbance, AddStartState, apply_edit
from manyworlds.live.user_events import StartState, repeat_push
from tests.live.test_fork import make_env


def moved(env, steps: int = 12):
    """Move all worlds of a task a little."""
    for i in range(steps):
        env.step(torch.full((env.num_envs, env.action_manager.total_action_dim), 0.2 * (i % 3)))
    return env


@pytest.mark.parametrize(
    "task", ["Velocity-Flat-Quadruped", "Velocity-Rough-Quadruped", "Lift-Cube-Arm"]
)
def test_an_episode_begins_in_the_state_that_was_sent(task):
    """Begin all episodes in the state of world 3: joints, velocities, place relative to origin."""
    env = moved(make_env(task))
    state = StartState.of(take_snapshot(env, 3), env)
    place = env.sim.data.qpos[3].clone()
    velocity = env.sim.data.qvel[3].clone()
    origin = env.scene.env_origins[3].clone()
    apply_edit(env, AddStartState(state=state, share=1.0))
    env.reset(env_ids=torch.tensor([0, 1, 4]))
    for i in (0, 1, 4):
        shift = env.scene.env_origins[i] - origin
        expected = place.clone()
        for joint in env.sim.mj_model.jnt_qposadr[env.sim.mj_model.jnt_type == 0]:
            expected[joint : joint + 3] += shift
        assert torch.allclose(env.sim.data.qpos[i], expected, atol=1e-5)
        assert torch.allclose(env.sim.data.qvel[i], velocity, atol=1e-5)
        assert env.episode_length_buf[i] == 0
    if task == "Velocity-Rough-Quadruped":  # worlds share the terrain: the same place
        assert torch.equal(env.scene.env_origins[0], origin)
        assert int(env.scene.terrain.terrain_types[0]) == state.cell[1]
    assert env.episode_length_buf[2] == 12  # was not reset
    env.step(torch.zeros(env.num_envs, env.action_manager.total_action_dim))
    env.close()


def test_shares_and_weights_are_kept():
    """Begin half of the episodes in two states, of which one is three times as frequent."""
    env = moved(make_env("Velocity-Flat-Quadruped"))
    first = StartState.of(take_snapshot(env, 0), env)
    high = dict(first.fields)
    high["qpos"] = [*high["qpos"][:2], 7.0, *high["qpos"][3:]]
    low = dict(first.fields)
    low["qpos"] = [*low["qpos"][:2], 5.0, *low["qpos"][3:]]
    for fields, weight in ((high, 3.0), (low, 1.0)):
        state = dataclasses.replace(first, fields=fields)
        apply_edit(env, AddStartState(state=state, weight=weight, share=0.5))
    counts = {7.0: 0, 5.0: 0, 0.0: 0}
    for _ in range(80):
        env.reset()
        for z in env.sim.data.qpos[:, 2].tolist():
            counts[z if z > 4.0 else 0.0] += 1
    assert sum(counts.values()) == 400
    assert 160 < counts[0.0] < 240
    assert 110 < counts[7.0] < 190 and 25 < counts[5.0] < 80
    assert env.event_manager.active_terms["reset"][-1] == START_STATES
    env.close()


@pytest.mark.slow
def test_a_world_of_another_variant_does_not_begin_there():
    """Send a state of one shape: worlds with other shapes begin as always."""
    env = moved(make_env("Push-Variants", lambda cfg: setattr(cfg.scene, "num_envs", 8)))
    names = env.sim.world_to_variant
    state = StartState.of(take_snapshot(env, 2), env)
    assert state.variants == {name: int(of[2]) for name, of in names.items()}
    place = env.sim.data.qpos[2].clone()
    apply_edit(env, AddStartState(state=state, share=1.0))
    env.reset()
    same = torch.stack([of == int(of[2]) for of in names.values()]).all(dim=0)
    hinges = [
        int(adr)
        for adr, kind in zip(env.sim.mj_model.jnt_qposadr, env.sim.mj_model.jnt_type, strict=True)
        if kind != 0
    ]
    began = torch.tensor(
        [torch.allclose(row[hinges], place[hinges], atol=1e-6) for row in env.sim.data.qpos]
    )
    assert bool(same.any()) and not bool(same.all())
    assert bool(began[same].all())
    env.close()


def test_a_recorded_push_returns_in_all_worlds():
    """Push for 0.1 s after pauses: force, factor, direction and duration are those asked for."""
    env = make_env("Velocity-Flat-Quadruped")
    edit = AddDisturbance(
        name="side",
        body="robot/trunk",
        force=(0.0, 80.0, 10.0),
        torque=(0.0, 0.0, 1.0),
        duration_s=0.1,
        pause_s=(0.1, 0.3),
        scale=(0.5, 1.5),
        any_direction=True,
    )
    apply_edit(env, edit)
    term = env.event_manager.get_term_cfg("side").func
    assert isinstance(term, repeat_push)
    found, pushed, angles = [], torch.zeros(5, dtype=torch.long), []
    robot = env.scene["robot"]
    for _ in range(60):
        env.step(torch.zeros(5, 12))
        force = robot.data.body_external_force[:, 0]
        pushed = torch.where(force.norm(dim=1) > 0, pushed + 1, 0)
        for i in (pushed == 1).nonzero().flatten().tolist():
            found.append(float(force[i, 2]) / 10.0)
            angles.append(float(torch.atan2(force[i, 1], force[i, 0])))
            flat = force[i, :2].norm()
            assert flat / 80.0 == pytest.approx(found[-1], rel=1e-5)
        assert int(pushed.max()) <= round(0.1 / env.step_dt)
    assert len(found) > 10 and 0.5 <= min(found) < 0.8 and 1.2 < max(found) <= 1.5
    assert max(angles) > 1.0 and min(angles) < -1.0
    env.close()
