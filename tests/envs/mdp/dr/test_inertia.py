"""Pseudo-inertia: what worlds get, that physics follows bit for bit, and what it costs."""

import copy
from itertools import pairwise

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.envs.mdp import dr
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from manyworlds.sim import RecomputeLevel
from tests.envs.mdp.dr.robot import disturb, make_env, plain_steps
from tests.envs.mdp.robot import is_uniform

FIELDS = ("body_mass", "body_ipos", "body_inertia", "body_iquat")
SOME = torch.tensor([1, 3])
EVERYTHING = {
    "alpha_range": (-0.3, 0.3),
    "d_range": (-0.2, 0.2),
    "s12_range": (-0.2, 0.2),
    "s13_range": (-0.1, 0.1),
    "s23_range": (-0.1, 0.1),
    "t_range": (-0.03, 0.03),
}
ARM = SceneEntityCfg("robot", body_names=("upper", "lower"))


@pytest.fixture(scope="module")
def env():
    """Four worlds without events."""
    return make()


def make(num_envs: int = 4):
    """Build worlds that have their own inertia."""
    env = make_env(num_envs)
    env.sim.expand_model_fields(FIELDS)
    return env


def rows(env) -> dict[str, torch.Tensor]:
    """Copy the four fields."""
    return {field: getattr(env.sim.model, field).clone() for field in FIELDS}


def test_fields_and_level_are_declared():
    """Declare the four fields, and what derives from masses."""
    assert dr.pseudo_inertia.model_fields == FIELDS
    assert dr.pseudo_inertia.recompute == RecomputeLevel.set_const


def test_no_range_changes_nothing(env):
    """Leave every world as compiled, bit for bit, also after a draw that it takes back."""
    compiled = env.sim.default_model_fields
    dr.pseudo_inertia(env, None, **EVERYTHING)
    dr.pseudo_inertia(env, None)
    for field, now in rows(env).items():
        torch.testing.assert_close(now, compiled[field].expand_as(now), rtol=1e-6, atol=1e-12)
    for field in ("body_mass", "body_ipos", "body_iquat"):
        assert torch.equal(rows(env)[field], compiled[field].expand_as(rows(env)[field]))


def test_only_the_worlds_and_bodies_named_change(env):
    """Write all four fields of the bodies selected, in the worlds named, and nothing else."""
    before = rows(env)
    dr.pseudo_inertia(env, SOME, **EVERYTHING, asset_cfg=ARM)
    arm = env.scene["robot"].indexing.body_ids[[1, 2]]
    for field, now in rows(env).items():
        differs = (now != before[field]).reshape(*now.shape[:2], -1).any(dim=-1)
        expected = torch.zeros_like(differs)
        expected[SOME[:, None], arm] = True
        assert torch.equal(differs, expected), field


def test_alpha_scales_mass_and_inertia_alike(env):
    """Multiply both by e^(2 alpha), drawn for each body, and move no center of mass."""
    dr.pseudo_inertia(env, None, alpha_range=(-0.4, 0.4))
    compiled, now = env.sim.default_model_fields, rows(env)
    bodies = env.scene["robot"].indexing.body_ids
    factor = now["body_mass"][:, bodies] / compiled["body_mass"][bodies]
    assert len(factor.unique()) == factor.numel()
    alpha = 0.5 * factor.log()
    assert alpha.abs().max() <= 0.4
    inertia = compiled["body_inertia"][bodies] * factor[..., None]
    torch.testing.assert_close(now["body_inertia"][:, bodies], inertia, rtol=1e-6, atol=0.0)
    for field in ("body_ipos", "body_iquat"):
        assert torch.equal(now[field], compiled[field].expand_as(now[field]))


def test_t1_moves_the_center_of_mass_by_t1(env):
    """Shift along x alone by exactly what is drawn."""
    dr.pseudo_inertia(env, None, t1_range=(0.05, 0.05))
    compiled, now = env.sim.default_model_fields, rows(env)
    bodies = env.scene["robot"].indexing.body_ids
    shift = torch.tensor([0.05, 0.0, 0.0])
    torch.testing.assert_close(
        now["body_ipos"][:, bodies] - compiled["body_ipos"][bodies],
        shift.expand(4, len(bodies), 3),
        rtol=0.0,
        atol=1e-8,
    )
    assert torch.equal(now["body_mass"], compiled["body_mass"].expand_as(now["body_mass"]))


@pytest.mark.parametrize(
    ("name", "column"),
    [("alpha_range", 0), *((f"t{i}_range", i) for i in (1, 2, 3)), ("d2_range", 4)],
)
def test_draws_have_the_distribution_asked_for(name, column):
    """Draw uniformly within the range: Kolmogorov-Smirnov at the 0.1 % level."""
    many = make(2000)
    dr.pseudo_inertia(many, None, **{name: (-0.1, 0.3)}, asset_cfg=ARM)
    bodies = many.scene["robot"].indexing.body_ids[[1, 2]]
    now = {field: values[:, bodies].double() for field, values in rows(many).items()}
    compiled = {f: v[bodies].double() for f, v in many.sim.default_model_fields.items() if f in now}
    if column == 0:
        drawn = 0.5 * (now["body_mass"] / compiled["body_mass"]).log()
    elif column == 4:
        drawn = (now["body_ipos"] / compiled["body_ipos"])[:, :1, 1].log()
    else:
        drawn = (now["body_ipos"] - compiled["body_ipos"])[..., column - 1]
    assert is_uniform(drawn, -0.1, 0.3)


def test_draws_never_accumulate(env):
    """Stay within what one draw can do, after a hundred of them."""
    compiled = env.sim.default_model_fields
    bodies = env.scene["robot"].indexing.body_ids
    for _ in range(100):
        dr.pseudo_inertia(env, None, alpha_range=(-0.1, 0.1), t_range=(-0.01, 0.01))
    now = rows(env)
    factor = now["body_mass"][:, bodies] / compiled["body_mass"][bodies]
    assert factor.log().abs().max() <= 0.2 + 1e-6
    assert (now["body_ipos"] - compiled["body_ipos"]).abs().max() <= 0.01 + 1e-6


def test_worlds_step_like_a_model_with_the_drawn_values():
    """Step drawn and undrawn worlds as plain MuJoCo C steps them, bit for bit."""
    event = EventTermCfg(func=dr.pseudo_inertia, mode="step", params=dict(EVERYTHING))
    env = make_env(draw=event)
    sim, model = env.sim, env.sim.mj_model
    env.event_manager.apply("step", SOME, dt=env.step_dt)
    sim.forward()
    disturb(env)
    states = sim.get_state()["state"].numpy()
    sim.step(40)
    end = sim.get_state()["state"].numpy()
    moved = []
    for world in range(4):
        own = copy.copy(model)
        for field in FIELDS:
            now, compiled = getattr(sim.model, field)[world].numpy(), getattr(own, field)
            drawn = now != compiled.astype(np.float32)
            compiled[drawn] = now[drawn]
        if world in SOME:
            mujoco.mj_setConst(own, mujoco.MjData(own))
            for field in ("body_subtreemass", "body_invweight0", "dof_invweight0"):
                rounded = getattr(own, field).astype(np.float32)
                np.testing.assert_array_equal(getattr(sim.model, field)[world].numpy(), rounded)
        moved.append(np.concatenate(plain_steps(own, states[world], 40)))
        np.testing.assert_array_equal(end[world, 1 : 1 + model.nq + model.nv], moved[world])
    assert all((moved[w] != moved[0]).any() for w in (1, 3))


@pytest.mark.parametrize("threads", [1, 2])
def test_one_seed_draws_one_set_of_worlds(threads):
    """Draw the same values from the same seed, whatever the number of threads."""
    draws = []
    for num_threads in (1, threads):
        before = torch.get_num_threads()
        torch.set_num_threads(num_threads)
        try:
            env = make(600)
            torch.manual_seed(7)
            dr.pseudo_inertia(env, None, **EVERYTHING)
        finally:
            torch.set_num_threads(before)
        draws.append(rows(env))
    for field, values in draws[0].items():
        assert torch.equal(values, draws[1][field])


@pytest.mark.parametrize("axes", ["d", "t"])
def test_ranges_of_all_axes_and_of_one_exclude_each_other(env, axes):
    """Refuse to guess which of two ranges is meant."""
    ranges = {f"{axes}_range": (0.0, 0.1), f"{axes}2_range": (0.0, 0.2)}
    with pytest.raises(ValueError, match=f"{axes}_range="):
        dr.pseudo_inertia(env, None, **ranges)


def test_other_distributions_leave_out_what_is_not_drawn(env):
    """Draw on a logarithmic scale although the other nine ranges are (0, 0)."""
    dr.pseudo_inertia(env, None, alpha_range=(0.1, 0.2), distribution="log_uniform")
    bodies = env.scene["robot"].indexing.body_ids
    compiled = env.sim.default_model_fields["body_mass"][bodies]
    alpha = 0.5 * (rows(env)["body_mass"][:, bodies] / compiled).log()
    assert alpha.min() >= 0.1 - 1e-5 and alpha.max() <= 0.2 + 1e-5


def test_warp_steps_like_native():
    """Write the same rows on the warp engine, recompute the same constants, and move the same."""
    pytest.importorskip("mujoco_warp")
    sims = []
    for engine in ("native", "warp"):
        event = EventTermCfg(func=dr.pseudo_inertia, mode="step", params=dict(EVERYTHING))
        env = make_env(engine=engine, draw=event)
        torch.manual_seed(5)
        env.event_manager.apply("step", SOME, dt=env.step_dt)
        disturb(env)
        env.sim.step(2)
        sims.append(env.sim)
    native, warp = sims
    for field in FIELDS:
        torch.testing.assert_close(
            getattr(warp.model, field), getattr(native.model, field), rtol=1e-5, atol=1e-7
        )
    for field in ("body_subtreemass", "body_invweight0", "dof_invweight0"):
        torch.testing.assert_close(
            getattr(warp.model, field), getattr(native.model, field), rtol=2e-3, atol=1e-4
        )
    torch.testing.assert_close(warp.data.qvel, native.data.qvel, rtol=1e-3, atol=2e-3)


def test_every_row_is_a_body():
    """Write moments of which none exceeds the sum of the others by more than float32 rounds."""
    many = make(500)
    wide = {name: tuple(5.0 * bound for bound in bounds) for name, bounds in EVERYTHING.items()}
    dr.pseudo_inertia(many, None, **wide)
    bodies = many.scene["robot"].indexing.body_ids
    inertia = many.sim.model.body_inertia[:, bodies].double()
    assert (many.sim.model.body_mass[:, bodies] > 0.0).all() and (inertia > 0.0).all()
    total = inertia.sum(dim=-1)
    assert (2.0 * inertia.amax(dim=-1) <= total * (1.0 + 1e-6)).all()
    norms = many.sim.model.body_iquat[:, bodies].double().norm(dim=-1)
    assert (norms - 1.0).abs().max() < 1e-6


def test_draws_in_inference_mode_count():
    """Draw within a rollout's inference mode, and again outside of it."""
    event = EventTermCfg(func=dr.pseudo_inertia, mode="reset", params=dict(EVERYTHING))
    env = make_env(draw=event)
    masses = [env.sim.model.body_mass.clone()]
    with torch.inference_mode():
        env.reset(env_ids=SOME)
        masses.append(env.sim.model.body_mass.clone())
    env.reset(env_ids=SOME)
    masses.append(env.sim.model.body_mass.clone())
    for before, after in pairwise(masses):
        changed = (before != after).any(dim=1)
        assert changed.tolist() == [False, True, False, True]
    rows = env.sim.get_state()["model.body_mass"]
    assert torch.equal(rows.float(), env.sim.model.body_mass)
