"""Events: when they happen, to which worlds, and what is recomputed then."""

import copy
import functools

import mujoco
import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.managers import EventManager, EventTermCfg
from manyworlds.managers.event_manager import RecomputeLevel, requires_model_fields
from manyworlds.validation.worlds import Worlds


def events(env, **kwargs) -> tuple[EventManager, list]:
    """Make a manager of one event that records the worlds it is called for."""
    calls: list = []

    def record(env, env_ids) -> None:
        calls.append(env_ids if env_ids is None else env_ids.tolist())

    return EventManager({"record": EventTermCfg(func=record, **kwargs)}, env), calls


def test_interval_events_happen_per_world(env):
    """Trigger each world when its own time has run out, and again after the next interval."""
    manager, calls = events(env, mode="interval", interval_range_s=(1.0, 1.0))
    manager.apply("interval", dt=0.6)
    manager.reset(torch.tensor([1]))
    manager.apply("interval", dt=0.6)
    manager.apply("interval", dt=0.6)
    manager.apply("interval", dt=0.6)
    assert calls == [[0, 2, 3], [1], [0, 2, 3]]


def test_global_interval_events_happen_to_all_at_once(env):
    """Share one timer on request."""
    manager, calls = events(env, mode="interval", interval_range_s=(1.0, 1.0), is_global_time=True)
    for _ in range(4):
        manager.apply("interval", dt=0.6)
    assert calls == [None, None]


@pytest.mark.parametrize("is_shared", [False, True])
def test_timers_get_random_phases(env, is_shared):
    """Shorten the intervals that have begun, and not those after them."""
    settings = {"interval_range_s": (100.0, 100.0), "is_global_time": is_shared}
    manager, calls = events(env, mode="interval", **settings)
    manager.randomize_timers()
    for _ in range(100):
        manager.apply("interval", dt=1.0)
    assert sorted(i for ids in calls for i in ids or ()) == ([] if is_shared else [0, 1, 2, 3])
    assert len(calls) == (1 if is_shared else 4)
    manager.apply("interval", dt=0.5)
    assert len(calls) == (1 if is_shared else 4)


def test_reset_events_can_be_throttled(env):
    """Skip worlds that were treated too recently."""
    manager, calls = events(env, mode="reset", min_step_count_between_reset=10)
    ids = torch.tensor([0, 1])
    manager.apply("reset", ids, global_env_step_count=0)
    manager.apply("reset", ids, global_env_step_count=5)
    manager.apply("reset", torch.tensor([1, 2]), global_env_step_count=6)
    manager.apply("reset", ids, global_env_step_count=10)
    assert calls == [[0, 1], [2], [0, 1]]


def test_event_mistakes_are_named(env):
    """Name arguments that a mode needs or cannot use."""
    with pytest.raises(ValueError, match="'x' of mode 'interval' needs interval_range_s"):
        EventManager({"x": EventTermCfg(func=lambda e, i: None, mode="interval")}, env)
    with pytest.raises(ValueError, match="has mode 'sometimes': choose one of startup"):
        EventManager({"x": EventTermCfg(func=lambda e, i: None, mode="sometimes")}, env)
    manager, _ = events(env, mode="step")
    with pytest.raises(ValueError, match="'step' need dt"):
        manager.apply("step")
    with pytest.raises(ValueError, match="do not pass env_ids"):
        manager.apply("interval", torch.tensor([0]), dt=0.1)
    with pytest.raises(ValueError, match="need global_env_step_count"):
        manager.apply("reset")


def picky(calls: list):
    """Make an event function that provides `prepare`, and records builds and calls."""

    def prepare(env, size, bounds=()):
        if size < 0:
            raise ValueError("size must not be negative")
        calls.append((size, copy.deepcopy(bounds)))
        return lambda env, env_ids: calls.append((size, env_ids.tolist()))

    def function(env, env_ids, size, bounds=()) -> None:
        calls.append("function")

    function.prepare = prepare  # type: ignore[attr-defined]
    return function


def test_prepared_events_are_built_when_terms_are_checked(env):
    """Call them once for no world, and name the term in their errors; leave the others alone."""
    manager, others = events(env, mode="reset")
    calls: list = []
    terms = {"x": EventTermCfg(func=functools.partial(picky(calls), size=1), mode="interval")}
    terms["x"].interval_range_s = (1.0, 1.0)
    EventManager(terms, env).check_terms()
    manager.check_terms()
    assert calls == [(1, ()), (1, [])] and others == []
    terms["x"].params["size"] = -1
    with pytest.raises(ValueError, match="term 'x' .* size must not be negative"):
        EventManager(terms, env).check_terms()
    del terms["x"].params["size"]
    terms["x"].params["sise"] = 2
    with pytest.raises(TypeError, match="term 'x' .* unexpected keyword argument 'sise'"):
        EventManager(terms, env).check_terms()


def test_prepared_events_are_built_again_after_a_change_of_parameters(env):
    """Notice edits in place, deep within parameters, and another function; build once otherwise."""
    calls: list = []
    params = {"size": 1, "bounds": {"a": [0, 1]}}
    term = EventTermCfg(func=picky(calls), mode="reset", params=params)
    manager = EventManager({"x": term}, env)
    cfg = manager.get_term_cfg("x")
    assert cfg.func is term.func

    def happen() -> list:
        del calls[:]
        manager.apply("reset", torch.tensor([2]), global_env_step_count=0)
        return list(calls)

    assert happen() == [(1, {"a": [0, 1]}), (1, [2])]
    assert happen() == [(1, [2])]
    cfg.params["bounds"]["a"][1] = 5
    assert happen() == [(1, {"a": [0, 5]}), (1, [2])]
    assert happen() == [(1, [2])]
    cfg.params = {"size": 3}
    assert happen() == [(3, ()), (3, [2])]
    cfg.func = lambda env, env_ids, size: calls.append("other")
    assert happen() == ["other"]


def test_own_objects_with_a_method_prepare_are_called_as_they_are(env):
    """Call an object, and instantiate a class, whatever their methods are called."""
    calls: list = []

    class Own:
        def __init__(self, cfg=None, env=None) -> None:
            pass

        def prepare(self, env) -> None:
            raise AssertionError

        def __call__(self, env, env_ids) -> None:
            calls.append(env_ids)

    for func in (Own(), Own):
        manager = EventManager({"x": EventTermCfg(func=func, mode="startup")}, env)
        manager.check_terms()
        manager.apply("startup")
    assert calls == [None, None]


def test_intervals_of_several_terms_run_apart(env):
    """Keep a timer for each term and world; restart those of reset worlds only."""
    calls: list = []

    def record(env, env_ids, name: str) -> None:
        calls.append((name, env_ids if env_ids is None else env_ids.tolist()))

    def term(name: str, seconds: float, **kwargs) -> EventTermCfg:
        interval = {"interval_range_s": (seconds, seconds), **kwargs}
        return EventTermCfg(func=record, mode="interval", params={"name": name}, **interval)

    cfg = {"a": term("a", 1.0), "g": term("g", 1.0, is_global_time=True), "b": term("b", 2.0)}
    manager = EventManager(cfg, env)
    for step in range(4):
        calls.append(step)
        manager.apply("interval", dt=0.5)
        if step == 0:
            manager.reset(torch.tensor([0]))
    first = [("a", [1, 2, 3]), ("g", None)]
    assert calls == [0, 1, *first, 2, ("a", [0]), 3, *first, ("b", [1, 2, 3])]


def test_reset_events_always_get_ids(env):
    """Pass ids of all worlds for None, since terms ask for their number."""
    manager, calls = events(env, mode="reset")
    manager.apply("reset", global_env_step_count=0)
    manager.apply("reset", torch.tensor([2]), global_env_step_count=0)
    manager.apply("reset", torch.tensor([], dtype=torch.long), global_env_step_count=0)
    assert calls == [[0, 1, 2, 3], [2]]


@requires_model_fields("geom_friction")
def rub(env, env_ids) -> None:
    """Change friction, from which nothing derives."""
    env.sim.model.geom_friction[env_ids, :, 0] = 0.5


@requires_model_fields("body_mass", recompute=RecomputeLevel.set_const)
def load(env, env_ids, mass: float) -> None:
    """Change every body's mass."""
    env.sim.model.body_mass[env_ids, 1:] = mass


class Stiffen:
    """Changes armature; the table alone says that something derives from it."""

    def __init__(self, cfg, env) -> None:
        pass

    def __call__(self, env, env_ids) -> None:
        env.sim.model.dof_armature[env_ids] = 0.3


stiffen = requires_model_fields("dof_armature")(Stiffen)


def test_events_declare_what_they_change(env):
    """Collect fields of functions, classes and partials, and those recomputed from them."""
    cfg = {
        "rub": EventTermCfg(func=rub, mode="reset"),
        "again": EventTermCfg(func=rub, mode="startup"),
    }
    assert EventManager(cfg, env).domain_randomization_fields == ("geom_friction",)
    cfg["stiffen"] = EventTermCfg(func=stiffen, mode="startup")
    cfg["load"] = EventTermCfg(func=functools.partial(load, mass=3.0), mode="reset")
    fields = EventManager(cfg, env).domain_randomization_fields
    assert fields[:3] == ("geom_friction", "dof_armature", "body_mass")
    assert {"body_subtreemass", "dof_invweight0", "body_invweight0"} <= set(fields)
    assert len(set(fields)) == len(fields)
    assert EventManager({}, env).domain_randomization_fields == ()


def test_the_strongest_level_is_recomputed_once_for_the_worlds_drawn(env, engine, monkeypatch):
    """Recompute after all terms, once, and only where a term that asks for it was applied."""
    seen: list = []

    def recompute(level, env_ids=None) -> None:
        ids = Worlds.of(env_ids, env.num_envs).host_ids_or_none
        seen.append((level, ids if ids is None else sorted(set(ids.tolist()))))

    monkeypatch.setattr(env.sim, "recompute_constants", recompute)
    cfg = {
        "rub": EventTermCfg(func=rub, mode="reset"),
        "load": EventTermCfg(
            func=load, mode="reset", params={"mass": 2.0}, min_step_count_between_reset=5
        ),
        "stiffen": EventTermCfg(func=stiffen, mode="startup"),
    }
    manager = EventManager(cfg, env)
    manager.apply("startup")
    manager.apply("reset", torch.tensor([3, 1]), global_env_step_count=0)
    manager.apply("reset", torch.tensor([1, 2]), global_env_step_count=1)
    manager.apply("reset", torch.tensor([1]), global_env_step_count=2)
    manager.apply("reset", global_env_step_count=9)
    full = RecomputeLevel.set_const
    # That of the field: MuJoCo Warp can compute less.
    stiffened = full if engine == "native" else RecomputeLevel.set_const_0
    assert seen == [(stiffened, None), (full, [1, 3]), (full, [2]), (full, [0, 1, 2, 3])]


def test_other_worlds_keep_what_derives_from_their_masses(env_cfg, engine):
    """Recompute inverse weights of the worlds that were reset, and of no other."""
    env_cfg.events["load"] = EventTermCfg(func=load, mode="reset", params={"mass": 7.0})
    env = ManagerBasedRlEnv(env_cfg)
    assert {"body_mass", "body_invweight0"} <= env.sim.expanded_fields
    before = env.sim.model.body_invweight0.clone()
    env.event_manager.get_term_cfg("load").params["mass"] = 14.0
    env.sim.model.body_invweight0[3] = 123.0
    env.reset(env_ids=[1])
    after = env.sim.model.body_invweight0
    assert torch.equal(after[[0, 2]], before[[0, 2]]) and (after[3] == 123.0).all()
    model = copy.copy(env.sim.mj_model)
    model.body_mass[1:] = 14.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    expected = torch.from_numpy(model.body_invweight0).float()
    rtol = 0.0 if engine == "native" else 1e-6
    torch.testing.assert_close(after[1], expected, rtol=rtol, atol=0.0)
    assert not torch.equal(after[1], before[1])


def mixed(env, **extra: EventTermCfg) -> EventManager:
    """Make a manager with a timer of each kind and an event that waits between resets."""

    def nothing(env, env_ids) -> None:
        pass

    interval = {"mode": "interval", "interval_range_s": (1.0, 2.0)}
    terms = {
        "own": EventTermCfg(func=nothing, **interval),
        "shared": EventTermCfg(func=nothing, is_global_time=True, **interval),
        "waits": EventTermCfg(func=nothing, mode="reset", min_step_count_between_reset=10),
    }
    return EventManager({**terms, **extra}, env)


def test_states_of_earlier_versions_are_loaded(env):
    """Load a state with separate tables of shared timers and of first events: it continues."""
    manager = mixed(env)
    time_left = torch.tensor([[0.5, 1.0, 1.5, 2.0]])
    state = {
        "_time_left": time_left,
        "_global_time_left": torch.tensor([[0.25]]),
        "_last_step": {"waits": torch.tensor([0, 7, 0, 0])},
        "_triggered_once": {"waits": torch.tensor([True, True, False, False])},
        "terms": {},
    }
    manager.load_state_dict(state)
    assert torch.equal(manager.tick(0.5), torch.tensor([[True, False, False, False], [True] * 4]))
    calls: list = []
    manager.get_term_cfg("waits").func = lambda env, env_ids: calls.append(env_ids.tolist())
    manager.apply("reset", torch.arange(4), global_env_step_count=9)
    assert calls == [[2, 3]]  # the first event of these, the others wait
    again = mixed(env)
    again.load_state_dict(manager.state_dict())
    assert torch.equal(again.tick(0.0), manager.tick(0.0))


def test_a_manager_with_another_term_continues(env):
    """Add and replace terms: the others keep their timers, and the first manager its own."""
    first = mixed(env)
    before = first.state_dict()
    calls: list = []

    def push(env, env_ids) -> None:
        calls.append(env_ids.tolist())

    term = EventTermCfg(func=push, mode="interval", interval_range_s=(3.0, 3.0))
    more = first.with_term("push", term)
    assert more.active_terms["interval"] == ["own", "shared", "push"]
    saved = more.state_dict()["_time_left"]
    assert torch.equal(saved[:2], before["_time_left"]) and (saved[2] == 3.0).all()
    replaced = more.with_term("own", EventTermCfg(func=push, mode="startup"))
    assert replaced.active_terms == {"reset": ["own", "waits"], "interval": ["shared", "push"]}
    assert torch.equal(replaced.state_dict()["_time_left"], saved[1:])
    for _ in range(2):  # once in each world, at its next reset
        replaced.apply("reset", torch.tensor([1, 2]), global_env_step_count=5)
    assert calls == [[1, 2]]
    with pytest.raises(ValueError, match="has mode 'sometimes'"):
        first.with_term("x", EventTermCfg(func=push, mode="sometimes"))
    assert first.active_terms == {"interval": ["own", "shared"], "reset": ["waits"]}
    assert torch.equal(first.state_dict()["_time_left"], before["_time_left"])
