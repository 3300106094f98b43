"""Randomization: drawn values, selected elements and columns, and operations."""

import copy
import inspect
import warnings

import numpy as np
import pytest
import torch

from manyworlds.envs.mdp import dr
from manyworlds.envs.mdp.dr import field_draws
from manyworlds.managers import EventTermCfg, SceneEntityCfg
from tests.envs.mdp.dr.robot import make_env
from tests.envs.mdp.robot import is_uniform
from tests.envs.mdp.robot import make_env as make_driven_env

MANY = 2000
SOME = torch.tensor([1, 3])
TIP = SceneEntityCfg("robot", geom_names=("tip",))
DRIFT = dr.Operation(
    name="drift", initialize=torch.zeros_like, combine=torch.add, uses_defaults=False
)
CLAMPED = dr.Distribution(
    name="truncated_normal",
    sample=lambda lo, hi, shape, device: torch.clamp(
        torch.normal(mean=(lo + hi) / 2, std=(hi - lo) / 4).expand(shape), min=lo, max=hi
    ),
)


@pytest.fixture
def env():
    """Four worlds without events."""
    return make_env()


@pytest.fixture(scope="module")
def many():
    """Enough worlds for statistics."""
    return make_env(num_envs=MANY)


def tip_friction(env):
    """The friction of the tip, shape [worlds, 3], and its three compiled values."""
    tip = env.sim.mj_model.geom("robot/tip").id
    return env.sim.model.geom_friction[:, tip], env.sim.get_default_field("geom_friction")[tip]


def draw_tip(env, env_ids=None, ranges=(2.0, 3.0), **params):
    """Draw the friction of the tip."""
    dr.geom_friction(env, env_ids, ranges, TIP, **params)
    return tip_friction(env)[0]


@pytest.mark.parametrize(
    ("distribution", "ranges", "cumulative"),
    [
        ("uniform", (0.3, 1.2), lambda x: (x - 0.3) / 0.9),
        ("log_uniform", (1e-4, 2e-2), lambda x: (x / 1e-4).log() / np.log(200.0)),
        ("gaussian", (0.7, 0.1), lambda x: torch.special.ndtr((x - 0.7) / 0.1)),
    ],
)
def test_distributions(many, distribution, ranges, cumulative):
    """Draw from the law that is asked for, in each world and element on its own."""
    drawn = draw_two(many, ranges, distribution)
    for column in drawn.T:
        assert is_uniform(cumulative(column), 0.0, 1.0)
        assert not is_uniform(cumulative(column) ** 1.3, 0.0, 1.0)
    assert torch.corrcoef(drawn.T)[0, 1].abs() < 0.1


def test_a_distribution_of_ones_own(many):
    """Draw from a normal law that is clamped to the bounds, in each world on its own."""
    drawn = draw_two(many, (0.3, 1.2), CLAMPED)
    low, high = torch.tensor([0.3, 1.2]).double()
    assert drawn.min() == low and drawn.max() == high
    for column in drawn.T:
        inside = column[(column > low) & (column < high)]
        tail = torch.special.ndtr(torch.tensor(-2.0))
        cumulative = torch.special.ndtr((inside - 0.75) / 0.225)
        assert is_uniform((cumulative - tail) / (1 - 2 * tail), 0.0, 1.0)
        assert len(inside.unique()) > 0.9 * MANY
    assert torch.corrcoef(drawn.T)[0, 1].abs() < 0.1


def draw_two(env, ranges, distribution):
    """Draw friction of two geoms, shape [worlds, 2]."""
    torch.manual_seed(7)
    geoms = SceneEntityCfg("robot", geom_names=("base", "tip"))
    dr.geom_friction(env, None, ranges, geoms, distribution=distribution)
    ids = [env.sim.mj_model.geom(f"robot/{name}").id for name in ("base", "tip")]
    return env.sim.model.geom_friction[:, ids, 0].double()


def test_operations(env):
    """Set, multiply the compiled values, or add to them, whatever the present values are."""
    ranges = {0: (2.0, 2.0), 1: (3.0, 3.0)}
    compiled = tip_friction(env)[1]
    for operation, first_two in {
        "abs": torch.tensor([2.0, 3.0]),
        "scale": compiled[:2] * torch.tensor([2.0, 3.0]),
        "add": compiled[:2] + torch.tensor([2.0, 3.0]),
    }.items():
        expected = torch.cat([first_two, compiled[2:]]).expand(4, 3)
        assert torch.equal(draw_tip(env, None, ranges, operation=operation), expected)


def test_an_operation_of_ones_own(env):
    """Combine whole rows, of which columns that are not drawn are as `initialize` makes them."""
    seen = []

    def combine(base, random):
        seen.append((base.clone(), random.clone()))
        return base + random

    own = dr.Operation("own", lambda base: torch.full_like(base, 9.0), combine, True)
    friction = draw_tip(env, SOME, (2.0, 2.0), operation=own, axes=[1])
    base, random = seen[-1]
    compiled = tip_friction(env)[1]
    assert torch.equal(base, compiled.expand(2, 1, 3))
    assert torch.equal(random, torch.tensor([9.0, 2.0, 9.0]).expand(2, 1, 3))
    assert torch.equal(friction[1], torch.stack([compiled[0], compiled[1] + 2.0, compiled[2]]))


def test_repeated_draws_do_not_drift(env):
    """Stay within the bounds around the compiled values after 100 draws; rotations, too."""
    compiled = tip_friction(env)[1][0]
    upper = SceneEntityCfg("robot", body_names=("upper",))
    body = env.sim.mj_model.body("robot/upper").id
    quat = env.sim.get_default_field("body_quat")[body]
    ipos = env.sim.get_default_field("body_ipos")[body]
    for _ in range(100):
        scaled = draw_tip(env, None, (0.9, 1.1), operation="scale")[:, 0] / compiled
        assert (scaled >= 0.9 - 1e-6).all() and (scaled <= 1.1 + 1e-6).all()
        dr.body_com_offset(env, SOME, (-0.01, 0.01), upper)
        assert ((env.sim.model.body_ipos[:, body] - ipos).abs() <= 0.01 + 1e-6).all()
        dr.body_quat(env, None, (-0.1, 0.1), (-0.1, 0.1), asset_cfg=upper)
        now = env.sim.model.body_quat[:, body]
        torch.testing.assert_close(now.norm(dim=-1), torch.ones(4))
        assert ((now @ quat).abs() >= np.cos(0.5 * 0.2)).all()


def test_drift_is_there_for_those_who_want_it(env):
    """Add to the present values again and again."""
    for _ in range(10):
        friction = draw_tip(env, SOME, (0.5, 0.5), operation=DRIFT)
    torch.testing.assert_close(friction[:, 0], torch.tensor([1.0, 6.0, 1.0, 6.0]))


def test_rotations_follow_the_compiled_orientation(env):
    """Turn about the element's own axes."""
    dr.geom_quat(env, SOME, yaw_range=(0.5, 0.5), asset_cfg=TIP)
    geom = env.sim.mj_model.geom("robot/tip").id
    default = env.sim.get_default_field("geom_quat")[geom]
    w, _, y, _ = default.tolist()
    assert y != 0.0
    c, s = np.cos(0.25), np.sin(0.25)
    expected = torch.tensor([w * c, y * s, y * c, w * s], dtype=torch.float32)
    got = env.sim.model.geom_quat[:, geom]
    torch.testing.assert_close(got[1], expected)
    assert torch.equal(got[0], default)


@pytest.mark.parametrize(
    ("params", "columns"),
    [
        ({"ranges": (2.0, 3.0)}, [0]),
        ({"ranges": (2.0, 3.0), "axes": [0, 1]}, [0, 1]),
        ({"ranges": (2.0, 3.0), "axes": 2}, [2]),
        ({"ranges": {0: (2.0, 3.0), 2: (4.0, 5.0)}}, [0, 2]),
        ({"ranges": {0: (2.0, 3.0), 2: (4.0, 5.0)}, "axes": [2]}, [2]),
        ({"ranges": {"t.*": (2.0, 3.0)}, "axes": [1]}, [1]),
    ],
)
def test_axes(env, params, columns):
    """Draw the columns asked for; the others keep their present values."""
    env.sim.expand_model_fields(("geom_friction",))
    tip_friction(env)[0][:] = 0.25
    got = draw_tip(env, SOME, **params)
    drawn = (got != 0.25).nonzero().tolist()
    assert drawn == [[world, column] for world in (1, 3) for column in columns]
    for column in columns:
        low = 4.0 if column == 2 and isinstance(params["ranges"], dict) else 2.0
        assert ((got[SOME, column] >= low) & (got[SOME, column] <= low + 1.0)).all()


def test_ranges_by_name(env):
    """Draw only for the elements that patterns name, each from its own range."""
    damping = env.sim.model.dof_damping.clone()
    ranges = {".*bow": (2.0, 2.0), "shoul.*": (5.0, 5.0)}
    dr.joint_damping(env, SOME, ranges, SceneEntityCfg("robot", joint_names=(".*",)), "uniform")
    new = env.sim.model.dof_damping
    changed = (new != damping).nonzero().tolist()
    shoulder, elbow = (
        env.sim.mj_model.joint(f"robot/{n}").dofadr[0] for n in ("shoulder", "elbow")
    )
    assert changed == [[w, d] for w in (1, 3) for d in sorted((shoulder, elbow))]
    assert (new[SOME, elbow] == 2.0).all() and (new[SOME, shoulder] == 5.0).all()


def test_shared_draws(many):
    """Give all elements of a world one draw, and each world another."""
    torch.manual_seed(7)
    dr.geom_friction(many, None, (0.3, 1.2), shared_random=True)
    friction = many.sim.model.geom_friction[:, many.scene["robot"].indexing.geom_ids, 0]
    assert (friction == friction[:, :1]).all()
    assert is_uniform(friction[:, 0], 0.3, 1.2)
    with pytest.raises(ValueError, match="ranges differ by name"):
        dr.geom_friction(many, None, {"tip": (1, 2), "tail": (2, 3)}, shared_random=True)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ranges": (0.3, 1.2), "axes": [3]}, "Invalid axes"),
        ({"ranges": (0.3, 1.2), "axes": [-1]}, "Invalid axes"),
        ({"ranges": (0.3, 1.2), "axes": []}, "Invalid axes"),
        ({"ranges": {}}, "Invalid axes"),
        ({"ranges": {0: (0.3, 1.2)}, "axes": [0, 1]}, "none for axes"),
        ({"ranges": (1.2, 0.3)}, "above its upper bound 0.3"),
        ({"ranges": (float("nan"), 0.3)}, "not finite"),
        ({"ranges": (0.0, 1.0), "distribution": "log_uniform"}, "must be > 0"),
        ({"ranges": (1.0, -1.0), "distribution": "gaussian"}, "must be >= 0"),
        ({"ranges": 0.5}, "two numbers"),
        ({"ranges": (-0.5, 0.5)}, r"geom_friction\[0\] of .* at least 0, .* 'abs' .* -0.5 to 0.5"),
        ({"ranges": (-2.0, 1.0), "operation": "scale"}, "at least 0, but operation 'scale'"),
        ({"ranges": (0.3, 1.2), "distribution": "normal"}, "Unknown distribution 'normal'"),
        ({"ranges": (0.3, 1.2), "operation": "scales"}, "Unknown operation .*mean 'scale'"),
        ({"ranges": {"foot": (0.3, 1.2)}}, "'foot' matches none"),
    ],
)
def test_mistakes_are_told_when_the_environment_is_built(params, message):
    """Name the term, and what is wrong with it."""
    cfg = EventTermCfg(func=dr.geom_friction, mode="interval", params=params)
    cfg.interval_range_s = (1.0, 2.0)
    with pytest.raises(ValueError, match=f"term 'feet' .*{message}"):
        make_env(feet=cfg)


@pytest.mark.parametrize(
    ("distribution", "ranges", "message"),
    [
        ("log_uniform", (0.0, 1.0), "must be > 0"),
        ("gaussian", (1.0, -1.0), "must be >= 0"),
        ("uniform", (1.2, 0.3), "above its upper bound 0.3"),
        ("uniform", (float("nan"), 0.3), "not finite"),
    ],
)
def test_ranges_of_distributions_given_as_objects(distribution, ranges, message):
    """Check ranges, though the manager has copies of the objects."""
    params = {"ranges": ranges, "distribution": dr.resolve_distribution(distribution)}
    cfg = EventTermCfg(func=dr.body_mass, mode="startup", params=params)
    with pytest.raises(ValueError, match=f"term 'mass' .*{message}"):
        make_env(mass=cfg)


def test_copies_of_distributions_and_operations_are_equal():
    """Know a copy for what it is."""
    for known in ("uniform", "log_uniform", "gaussian"):
        assert copy.deepcopy(dr.resolve_distribution(known)) == dr.resolve_distribution(known)
    for known in ("abs", "scale", "add"):
        assert copy.deepcopy(dr.resolve_operation(known)) == dr.resolve_operation(known)


def test_an_entity_without_such_elements():
    """Say that there is nothing to randomize."""
    env = make_driven_env()
    with pytest.raises(ValueError, match="'robot' has no camera to randomize"):
        dr.cam_fovy(env, None, (40.0, 60.0))


def test_degrees_are_suspicious(env):
    """Warn of rotations beyond a whole turn, and of no others."""
    with pytest.warns(UserWarning, match="radians"):
        dr.site_quat(env, SOME, yaw_range=(-10.0, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dr.site_quat(env, SOME, yaw_range=(-np.pi, np.pi))


def test_mass_without_inertia_is_suspicious(env):
    """Warn that inertia stays."""
    with pytest.warns(UserWarning, match="does not scale inertia"):
        dr.body_mass(env, SOME, (0.8, 1.2))


def test_terms_are_resolved_once(env, monkeypatch):
    """Build what a term draws with at build time, and again only when parameters change."""
    params = {"ranges": {0: (1.0, 2.0)}}
    cfg = EventTermCfg(func=dr.geom_friction, mode="reset", params=params)
    env = make_env(feet=cfg)
    built = []
    rows = field_draws.Rows
    monkeypatch.setattr(field_draws, "Rows", lambda *args: built.append(args[1]) or rows(*args))
    for _ in range(3):
        env.reset()
    assert built == []
    env.event_manager.get_term_cfg("feet").params["ranges"][0] = (5.0, 6.0)
    for _ in range(3):
        env.reset()
    assert built == ["geom_friction"] and tip_friction(env)[0][:, 0].min() >= 5.0
    assert params == {"ranges": {0: (1.0, 2.0)}}


def test_a_selection_that_nobody_resolved(env):
    """Resolve names in a direct call, without touching the caller's object."""
    cfg = SceneEntityCfg("robot", geom_names=("tip",))
    dr.geom_rgba(env, None, (0.0, 0.1), cfg)
    tip = env.sim.mj_model.geom("robot/tip").id
    rgba = env.sim.get_default_field("geom_rgba").expand(4, -1, -1)
    assert (env.sim.model.geom_rgba != rgba).any(dim=-1).nonzero()[:, 1].unique().tolist() == [tip]
    assert not cfg.is_resolved


def test_copies_of_a_selection_are_not_resolved():
    """Leave out of a copy what belongs to one environment."""
    term = EventTermCfg(func=dr.geom_rgba, mode="reset", params={"ranges": (0, 1)})
    cfg = make_env(color=term).event_manager.get_term_cfg("color").params["asset_cfg"]
    assert cfg.is_resolved
    assert not copy.deepcopy(cfg).is_resolved
    assert copy.deepcopy(cfg) == cfg


@pytest.mark.parametrize("threads", [1, 3])
def test_same_seed_same_draws(threads):
    """Draw the same whatever the number of threads, and something else with another seed."""
    before = torch.get_num_threads()
    drawn = []
    try:
        for seed, count in ((3, 1), (3, threads), (4, 1)):
            torch.set_num_threads(count)
            env = make_env(
                num_envs=300,
                friction=EventTermCfg(
                    func=dr.geom_friction, mode="reset", params={"ranges": (0.0, 1.0)}
                ),
                com=EventTermCfg(
                    func=dr.body_com_offset,
                    mode="startup",
                    params={"ranges": (0.0, 0.1), "distribution": "gaussian"},
                ),
            )
            env.reset(seed=seed)
            drawn.append([env.sim.model.geom_friction, env.sim.model.body_ipos])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(drawn[0], drawn[1], strict=True))
    assert not torch.equal(drawn[0][0], drawn[2][0])


def test_worlds_with_their_own_compiled_values(env, monkeypatch):
    """Scale what each world was compiled with, where that differs and even may change."""
    sim = type(env.sim)
    compiled = torch.arange(1.0, 5.0)[:, None, None] * env.sim.get_default_field("geom_friction")
    monkeypatch.setattr(sim, "per_world_default_fields", {"geom_friction"})
    monkeypatch.setattr(sim, "get_default_field", lambda self, field: compiled)
    tip = copy.deepcopy(TIP)
    tip.resolve(env.scene)
    dr.geom_friction(env, SOME, (2.0, 2.0), tip, operation="scale")
    friction = env.sim.model.geom_friction[:, env.sim.mj_model.geom("robot/tip").id]
    assert friction[:, 0].tolist() == [1.0, 4.0, 1.0, 8.0]
    compiled[1] *= 10.0
    dr.geom_friction(env, SOME, (2.0, 2.0), tip, operation="scale")
    assert friction[:, 0].tolist() == [1.0, 40.0, 1.0, 8.0]


def test_the_entity_follows_the_model():
    """Move limits, default positions and action offsets with the model, in the worlds drawn."""
    env = make_driven_env()
    data, joint = env.scene["robot"].data, 0
    limits, soft = data.joint_pos_limits.clone(), data.soft_joint_pos_limits.clone()
    default, offset = (
        data.default_joint_pos.clone(),
        env.action_manager.get_term("position").offset.clone(),
    )
    shoulder = SceneEntityCfg("robot", joint_names=("shoulder",))
    dr.joint_limits(env, SOME, {0: (-0.4, -0.4), 1: (0.6, 0.6)}, shoulder)
    dr.joint_default_pos(env, SOME, (0.25, 0.25), shoulder)
    for world in range(4):
        new = world in SOME
        hard = torch.tensor([-0.4, 0.6]) if new else limits[world, joint]
        assert torch.equal(data.joint_pos_limits[world, joint], hard)
        shrunk = torch.tensor([-0.15, 0.35]) if new else soft[world, joint]
        torch.testing.assert_close(data.soft_joint_pos_limits[world, joint], shrunk)
        shift = 0.25 * new
        torch.testing.assert_close(data.default_joint_pos[world, joint], default[0, joint] + shift)
        now = env.action_manager.get_term("position").offset[world]
        torch.testing.assert_close(now[0], offset[world, 0] + shift)
        assert now[1] == offset[world, 1]


def test_one_recompute_for_all_events(monkeypatch):
    """Recompute once an apply, at the strongest level, for the worlds drawn only."""
    env = make_env(
        friction=EventTermCfg(func=dr.geom_friction, mode="reset", params={"ranges": (1, 2)}),
        armature=EventTermCfg(func=dr.joint_armature, mode="reset", params={"ranges": (1, 2)}),
        com=EventTermCfg(func=dr.body_com_offset, mode="reset", params={"ranges": (0, 0.1)}),
    )
    calls = []
    monkeypatch.setattr(env.sim, "recompute_constants", lambda *args: calls.append(args))
    env.reset(env_ids=SOME)
    ((level, worlds),) = calls
    assert level == dr.RecomputeLevel.set_const and sorted({*worlds.host_ids}) == [1, 3]
    assert {"geom_friction", "dof_armature", "body_ipos"} <= env.sim.expanded_fields


def test_declared_levels():
    """Declare what the table of model fields says, as the contract lists it."""
    level = dr.RecomputeLevel
    declared = {
        name: func.recompute for name in dr.__all__ if hasattr(func := getattr(dr, name), "prepare")
    }
    assert declared["body_mass"] == declared["body_com_offset"] == level.set_const
    for name in ("body_pos", "body_quat", "joint_armature", "joint_default_pos", "tendon_armature"):
        assert declared[name] == level.set_const_0
    assert declared["body_gravcomp"] == level.set_const_fixed
    assert declared["geom_friction"] == declared["joint_damping"] == level.none


def test_default_operations():
    """Scale masses and sizes, add to positions of bodies and joints, and set all else."""
    default = {
        name: arguments["operation"].default
        for name in dr.__all__
        if "operation" in (arguments := inspect.signature(getattr(dr, name)).parameters)
    }
    other = {name: operation for name, operation in default.items() if operation != "abs"}
    assert other == {
        **dict.fromkeys(("body_mass", "geom_size", "pd_gains", "effort_limits"), "scale"),
        **dict.fromkeys(("body_com_offset", "body_ipos", "body_pos"), "add"),
        **dict.fromkeys(("joint_default_pos", "qpos0", "gravity"), "add"),
    }
