"""Push-Variants: worlds, terms on states placed by hand, success, seeds."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
import torch

pytest.importorskip("coacd", reason="shapes need the extra 'meshes'")

from manyworlds.envs import ManagerBasedRlEnv, check_env
from manyworlds.tasks import load_env_cfg, load_rl_cfg
from manyworlds.tasks.push import mdp
from manyworlds.tasks.push.push_env_cfg import HOLD_S, MAX_SPEED, push_variants_env_cfg
from manyworlds.tasks.push.shapes import HELD_OUT, SHAPES, TRAINED
from tests.rl.test_onnx_policy import exported, largest_difference


def make(num_envs: int = 4, shapes=("box", "bar", "U", "star"), seed: int = 3):
    """Build a small environment of some shapes."""
    cfg = push_variants_env_cfg(shapes=shapes)
    cfg.scene.num_envs, cfg.seed = num_envs, seed
    env = ManagerBasedRlEnv(cfg)
    env.reset()
    return env


def place(env, pose, pusher, goal) -> None:
    """Put object, pusher and goal somewhere, at rest, in all worlds."""
    for name, values in (("object", pose), ("pusher", pusher)):
        position = torch.tensor([values] * env.num_envs)
        env.scene[name].write_joint_state_to_sim(position, torch.zeros_like(position))
    env.command_manager.get_term("goal").goal[:] = torch.tensor(goal)
    env.sim.forward()


def test_worlds_take_turns_in_shapes():
    """Show another shape in each of a few worlds; to watch, also those held out."""
    assert set(load_env_cfg("Push-Variants").scene.entities["object"].variants) == set(TRAINED)
    watched = load_env_cfg("Push-Variants", play=True)
    assert set(HELD_OUT) <= set(watched.scene.entities["object"].variants) == set(SHAPES)
    env = make(6)
    assert env.sim.world_to_variant["object"].tolist() == [0, 1, 2, 3, 0, 1]
    mass = env.sim.model.body_mass[:, env.scene["object"].indexing.body_ids[-1]]
    expected = [SHAPES[name].mass for name in ("box", "bar", "U", "star", "box", "bar")]
    np.testing.assert_allclose(mass.cpu(), expected, rtol=5e-3)


def test_the_task_has_nothing_that_users_should_mend():
    """Check the task as users check theirs: goals that random actions never reach are notes."""
    assert not check_env(load_env_cfg("Push-Variants")).findings


def test_a_reset_draws_goals_and_places_in_bounds():
    """Draw goals 15 to 40 cm from the object, and the pusher outside of it."""
    env = make(600)
    distance = mdp.goal_distance(env)
    assert 0.15 <= distance.min() < 0.17 and 0.38 < distance.max() <= 0.4
    way = mdp.to_goal(env)
    assert (way > 0).float().mean(dim=0).sub(0.5).abs().max() < 0.1
    gap = env.scene["pusher"].data.joint_pos - env.scene["object"].data.joint_pos[:, :2]
    assert gap.norm(dim=1).min() >= 0.16
    assert env.scene["object"].data.joint_pos[:, :2].abs().max() <= 0.05
    largest = max(np.linalg.norm(shape.outline, axis=1).max() for shape in SHAPES.values())
    assert largest + mdp.PUSHER_RADIUS < 0.16


def test_observations_do_not_depend_on_the_direction():
    """See the same when object, pusher and goal are turned together about the origin."""
    env = make()
    seen = []
    for turn in (0.0, math.radians(45.0)):  # a whole number of steps of the table of outlines
        c, s = math.cos(turn), math.sin(turn)

        def turned(x, y, c=c, s=s):
            return [c * x - s * y, s * x + c * y]

        place(env, [*turned(0.02, 0.01), 0.3 + turn], turned(-0.15, 0.05), turned(0.25, 0.1))
        seen.append(env.observation_manager.compute()["actor"])
    torch.testing.assert_close(seen[0], seen[1], atol=1e-5, rtol=0.0)


def test_outlines_are_seen_from_the_goal():
    """See a bar's half length towards the goal and its half width across; and the pusher's gap."""
    env = make(2, ("bar", "disc"))
    place(env, [0.0, 0.0, math.pi / 2.0], [0.0, -0.2], [0.0, 0.3])
    term = env.observation_manager.get_term_cfg("actor", "outline")
    seen = term.func(env, **term.params)
    assert seen.shape == (2, 25)
    assert seen[0, [0, 6, 12, 18]].tolist() == pytest.approx([0.1, 0.03, 0.1, 0.03], abs=1e-6)
    gap = 0.2 - mdp.PUSHER_RADIUS
    assert seen[:, -1].tolist() == pytest.approx([gap - 0.1, gap - 0.07], abs=1e-3)


def test_actions_move_along_the_way_to_the_goal():
    """Turn the action into the world's frame, and bound its length."""
    env = make()
    place(env, [0.0, 0.0, 0.0], [0.3, 0.0], [0.0, 0.3])
    (term,) = [env.action_manager.get_term("velocity")]
    term.process_actions(torch.tensor([[1.0, 0.0], [0.0, 0.5], [3.0, 4.0], [0.0, 0.0]]))
    wanted = MAX_SPEED * torch.tensor([[0.0, 1.0], [-0.5, 0.0], [-0.8, 0.6], [0.0, 0.0]])
    torch.testing.assert_close(term._targets(), wanted, atol=1e-6, rtol=0.0)


def test_plain_mujoco_sees_and_pushes_as_the_environment(tmp_path):
    """Follow the environment's observations, actions and states in plain MuJoCo."""
    cfg = push_variants_env_cfg(play=True, shapes=("T",))
    runner, policy, data = exported(cfg, load_rl_cfg("Push-Variants"), tmp_path)
    env = runner.env.unwrapped
    policy.commands["goal"][:] = env.command_manager.get_command("goal")[0].numpy()
    assert largest_difference(runner, policy, data, steps=30) < 1e-5
    observed = policy.observe(data, "actor")
    expected = runner.env.get_observations()["actor"][0].numpy()
    np.testing.assert_allclose(observed, expected, atol=1e-4)


def test_success_asks_for_half_a_second_at_the_goal():
    """End with success after half a second within 5 cm, and restart the count after a break."""
    env = make(3, ("box", "bar", "disc"))
    place(env, [0.0, 0.0, 0.0], [0.3, 0.0], [0.049, 0.0])
    env.command_manager.get_term("goal").goal[1] = torch.tensor([0.051, 0.0])
    still = torch.zeros(3, 2)
    needed = round(HOLD_S / env.step_dt)
    for step in range(1, 3 * needed):
        if step == needed - 2:  # push the third away, once
            env.command_manager.get_term("goal").goal[2] = torch.tensor([0.2, 0.0])
        if step == needed - 1:
            env.command_manager.get_term("goal").goal[2] = torch.tensor([0.0, 0.0])
        *_, terminated, _, _ = env.step(still)
        if terminated.any():
            break
    time_held = step * env.step_dt
    assert terminated.tolist() == [True, False, False]
    assert HOLD_S <= time_held < HOLD_S + 2.0 * env.step_dt
    assert env.termination_manager.get_term("success").tolist() == [True, False, False]
    assert env.reward_manager.step_reward[0, 0] > 0.0


def test_rewards_of_progress_are_signed():
    """Reward the object's speed to the goal, and charge for its distance from the region."""
    env = make(2, ("box", "disc"))
    place(env, [0.0, 0.0, 0.0], [0.0, 0.2], [0.3, 0.0])
    env.scene["object"].write_joint_velocity_to_sim(torch.tensor([[0.2, 0.1, 0.0]] * 2))
    env.sim.forward()
    assert mdp.progress(env).tolist() == pytest.approx([0.2, 0.2])
    env.scene["object"].write_joint_velocity_to_sim(torch.zeros(2, 3))
    env.sim.forward()
    assert mdp.progress(env).tolist() == [0.0, 0.0]
    assert mdp.away(env).tolist() == pytest.approx([0.25, 0.25])


def test_the_way_behind_leads_round():
    """Measure straight ways outside the circle, arcs on it, and nothing where one pushes."""
    env = make(1, ("box",))
    ways = {
        (-0.1, 0.0): 0.0,
        (-0.04, 0.0): 0.0,
        (-0.3, 0.0): 0.2,
        (0.0, 0.1): 0.05 * math.pi,
        (0.0, -0.25): 0.05 * math.pi + 0.15,
        (0.25, 0.0): 0.1 * math.pi + 0.15,
        (0.05, 0.0): 0.1 * math.pi + 0.05,
    }
    for pusher, way in ways.items():
        place(env, [0.0, 0.0, 0.0], pusher, [0.3, 0.0])
        assert mdp.way_behind(env, 0.1).item() == pytest.approx(way, abs=1e-6)


def test_going_behind_adds_up():
    """Gain what the way got shorter, and nothing in the step after a reset."""
    env = make(1, ("box",))
    term = env.reward_manager.get_term_cfg("going_behind")
    gained = []
    for pusher in ([0.3, 0.1], [0.0, 0.2], [-0.1, 0.0], [0.3, 0.1]):
        place(env, [0.0, 0.0, 0.0], pusher, [0.3, 0.0])
        gained.append(term.func(env, **term.params).item() * env.step_dt)
    first = mdp.way_behind(env, **term.params).item()
    assert gained[0] == 0.0 and gained[1] > 0.0 and gained[2] > 0.0
    assert gained[1] + gained[2] == pytest.approx(first, abs=1e-5)
    assert sum(gained) == pytest.approx(0.0, abs=1e-5)


def test_friction_stops_what_is_not_pushed():
    """Slide to a stop within the distance that Coulomb's law says, as plain MuJoCo does."""
    model = push_variants_env_cfg().scene.entities["object"].variants["disc"]().compile()
    model.opt.timestep = 0.001
    data = mujoco.MjData(model)
    data.qvel[0] = 0.5
    mujoco.mj_step(model, data, 1000)
    assert data.qpos[0] == pytest.approx(0.5**2 / (2.0 * 0.4 * 9.81), rel=0.05)
    assert abs(data.qvel[0]) < 1e-3


def test_a_seed_gives_one_course():
    """Repeat starts, goals and motions from a seed; other seeds give others."""

    def course(seed: int) -> torch.Tensor:
        env = make(seed=seed)
        actions = torch.Generator().manual_seed(1)
        for _ in range(20):
            obs = env.step(torch.rand(4, 2, generator=actions) - 0.5)[0]
        return obs["actor"]

    first = course(3)
    assert torch.equal(first, course(3)) and not torch.equal(first, course(4))
