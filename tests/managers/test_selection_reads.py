"""Kinds of elements that terms read of their selections, and the refusal of others."""

from __future__ import annotations

import functools
from copy import deepcopy

import pytest
import torch

from manyworlds.entity import ELEMENT_KINDS
from manyworlds.envs import ManagerBasedRlEnv, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import (
    EventTermCfg,
    ManagerTermBase,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
    TerminationTermCfg,
    requires_model_fields,
)
from manyworlds.managers.scene_entity_config import SELECTED_KINDS
from manyworlds.managers.selection_reads import check_selection, read_kinds
from manyworlds.tasks import list_tasks, load_env_cfg
from manyworlds.tasks.velocity import mdp as velocity_mdp
from tests.envs.mdp.dr.robot import env_cfg, make_env

ROBOT = SceneEntityCfg("robot")
BODIES = SceneEntityCfg("robot", body_names=("lower",))
JOINTS = SceneEntityCfg("robot", joint_names=("elbow",))


def plain(env, asset_cfg=ROBOT):
    """Read ids of joints."""
    return env.scene[asset_cfg.name].data.joint_pos[:, asset_cfg.joint_ids].sum(dim=1)


def unread(env, asset_cfg=ROBOT):
    """Read no element."""
    return env.scene[asset_cfg.name].data.joint_pos.sum(dim=1)


def both(env, asset_cfg=ROBOT):
    """Read bodies, and joints where bodies are named."""
    if asset_cfg.body_names is not None:
        return env.scene["robot"].data.body_link_pos_w[:, asset_cfg.index("body"), 2].sum(dim=1)
    return plain(env, asset_cfg)


def renamed(env, asset_cfg=ROBOT):
    """Read sites through another name of the selection."""
    chosen = asset_cfg
    return env.scene["robot"].data.site_pos_w[:, chosen.site_ids, 2].sum(dim=1)


def in_a_list(env, asset_cfg=ROBOT):
    """Read geoms of a selection that cannot be followed."""
    chosen = [asset_cfg]
    return [env.scene["robot"].indexing.geom_ids[each.geom_ids] for each in chosen]


def by_method(env, asset_cfg=ROBOT):
    """Give the selection to an object that nobody knows."""
    return env.helper.total(asset_cfg)


def by_getattr(env, asset_cfg=ROBOT):
    """Read an attribute whose name is made."""
    return getattr(asset_cfg, "body" + "_ids")


def by_variable_index(env, kind, asset_cfg=ROBOT):
    """Read a kind that a parameter names."""
    return asset_cfg.index(kind)


def by_keywords(env, **params):
    """Take any parameters."""
    return plain(env, **params)


@torch.no_grad()
def decorated(env, asset_cfg=ROBOT):
    """Read joints without gradients."""
    return plain(env, asset_cfg=asset_cfg)


class Undeclared(ManagerTermBase):
    """Term that does not declare what it reads."""

    def __init__(self, cfg, env):
        super().__init__(env)
        self._bodies = cfg.params["asset_cfg"].index("body")

    def __call__(self, env, asset_cfg):
        """Sum heights."""
        return env.scene["robot"].data.body_link_pos_w[:, self._bodies, 2].sum(dim=1)


class Declared(Undeclared):
    """Term that declares what it reads."""

    selects = frozenset({"body"})


class Derived(Declared):
    """Term that reads more than its base."""

    def __call__(self, env, asset_cfg):
        """Sum heights and angles."""
        return super().__call__(env, asset_cfg=ROBOT) + plain(env, asset_cfg)


@pytest.mark.parametrize(
    ("func", "kinds"),
    [
        (plain, {"joint"}),
        (unread, set()),
        (both, {"body", "joint"}),
        (renamed, None),
        (decorated, {"joint"}),
        (functools.partial(plain), {"joint"}),
        (Declared, {"body"}),
        (Derived, None),
        (in_a_list, None),
        (by_method, None),
        (by_getattr, None),
        (by_variable_index, None),
        (by_keywords, None),
        (Undeclared, None),
        (lambda env, asset_cfg: asset_cfg.joint_ids, None),
        (eval("lambda env, asset_cfg: asset_cfg.joint_ids"), None),
        (torch.sum, None),
        (mdp.joint_torques_l2, {"actuator"}),
        (mdp.projected_gravity, set()),
        (mdp.posture, {"joint"}),
        (mdp.electrical_power_cost, {"joint", "tendon"}),
        (velocity_mdp.upright, {"body"}),
        (velocity_mdp.variable_posture, {"joint"}),
        (dr.joint_damping, {"joint", "ball_joint"}),
        (dr.joint_default_pos, {"joint"}),
        (dr.geom_friction, {"geom"}),
        (dr.geom_matid, {"geom", "material"}),
        (dr.pd_gains, {"actuator", "joint", "tendon", "site"}),
        (dr.sync_actuator_delays, set()),
    ],
)
def test_kinds_that_are_read(func, kinds):
    """Find what a term reads in its declaration or source, or that it is not known."""
    found = read_kinds(func, "asset_cfg")
    assert found == (None if kinds is None else frozenset(kinds))


@pytest.mark.parametrize("kind", ELEMENT_KINDS)
def test_selections_of_each_kind(kind):
    """Accept each kind that is read, by names or ids, and refuse it where none is read."""
    for given in ({f"{kind}_names": ("x",)}, {f"{kind}_ids": [0]}):
        selection = SceneEntityCfg("robot", **given)
        with pytest.raises(ValueError, match=f"reads no {kind} of it.*leave it out"):
            check_selection(unread, "asset_cfg", selection)
        check_selection(by_method, "asset_cfg", selection)
    check_selection(unread, "asset_cfg", ROBOT)


def of(func, asset_cfg, **more):
    """Return the params of a term with a selection."""
    return {"func": func, "params": {"asset_cfg": asset_cfg, **more}}


SCALED = {"ranges": (0.5, 1.5), "operation": "scale"}


@pytest.mark.parametrize(
    ("func", "selection", "params", "message"),
    [
        (dr.joint_damping, BODIES, SCALED, "body_names=.*joint_damping reads no body.*joint_names"),
        (dr.geom_friction, BODIES, SCALED, "geom_friction reads no body.*give geom_names"),
        (dr.pd_gains, BODIES, {"kp_range": (1, 2), "kd_range": (1, 2)}, "reads no body"),
        (dr.encoder_bias, BODIES, {"bias_range": (0, 1)}, "encoder_bias reads no body"),
        (dr.sync_actuator_delays, JOINTS, {}, "reads no joint of it.*leave it out"),
        (mdp.reset_joints_by_offset, BODIES, {"position_range": (0, 1)}, "reads no body"),
    ],
)
def test_events_with_selections_of_another_kind(func, selection, params, message):
    """Refuse them when the environment is built."""
    term = EventTermCfg(mode="startup", **of(func, selection, **params))
    with pytest.raises(ValueError, match=f"EventManager term 'drawn'.*{message}"):
        make_env(drawn=term)


def test_direct_calls_with_selections_of_another_kind():
    """Refuse them where a function of `dr` is called without a manager."""
    env = make_env()
    with pytest.raises(ValueError, match="joint_damping reads no body"):
        dr.joint_damping(env, None, (0.5, 1.5), BODIES)


@pytest.mark.parametrize(
    ("group", "term", "message"),
    [
        (
            "rewards",
            RewardTermCfg(weight=-1.0, **of(mdp.joint_torques_l2, JOINTS)),
            "joint_torques_l2 reads no joint.*give actuator_names",
        ),
        ("metrics", MetricsTermCfg(**of(unread, JOINTS)), "unread reads no joint"),
        ("terminations", TerminationTermCfg(**of(unread, BODIES)), "unread reads no body"),
        (
            "observations",
            ObservationGroupCfg({"x": ObservationTermCfg(**of(mdp.projected_gravity, BODIES))}),
            "projected_gravity reads no body",
        ),
    ],
)
def test_terms_of_all_managers(group, term, message):
    """Refuse a selection that has no effect, whatever the manager."""
    with pytest.raises(ValueError, match=message):
        build(**{group: {"term": term}})


def build(**groups):
    """Build an environment of the robot with terms."""
    cfg = env_cfg()
    for group, terms in groups.items():
        setattr(cfg, group, terms)
    return ManagerBasedRlEnv(cfg, device="cpu")


@requires_model_fields("dof_damping")
def drawn_by_hand(env, env_ids, asset_cfg=ROBOT):
    """Draw damping of joints."""
    ids = env.scene["robot"].indexing.joint_v_adr[asset_cfg.joint_ids]
    env.sim.model.dof_damping[env_ids[:, None], ids] = 0.3


def test_terms_of_users():
    """Accept what a term of one's own reads, and refuse what it does not."""
    term = EventTermCfg(mode="reset", **of(drawn_by_hand, deepcopy(JOINTS)))
    make_env(drawn=term).reset()
    with pytest.raises(ValueError, match="drawn_by_hand reads no body"):
        make_env(drawn=EventTermCfg(mode="reset", **of(drawn_by_hand, BODIES)))
    for func in (Declared, Undeclared, Derived):
        build(metrics={"heights": MetricsTermCfg(**of(func, deepcopy(BODIES)))}).close()
    build(metrics={"heights": MetricsTermCfg(**of(Undeclared, deepcopy(JOINTS)))}).close()
    with pytest.raises(ValueError, match="Declared reads no joint of it.*give body_names instead"):
        build(metrics={"heights": MetricsTermCfg(**of(Declared, deepcopy(JOINTS)))})


@pytest.mark.parametrize("task", list_tasks())
def test_selections_of_registered_tasks(task):
    """Find no selection in a task that its term does not read, or of a class without `selects`."""
    cfg = load_env_cfg(task)
    terms = {**cfg.rewards, **cfg.terminations, **cfg.events, **cfg.metrics, **cfg.curriculum}
    for group in cfg.observations.values():
        terms |= group.terms
    for term in terms.values():
        for name, value in term.params.items() if term is not None else ():
            if isinstance(value, SceneEntityCfg):
                check_selection(term.func, name, value)
                given = any(value.is_given(kind) for kind in SELECTED_KINDS)
                if given and isinstance(term.func, type):
                    assert read_kinds(term.func, name) is not None, term.func
