"""Variants in an environment: assigned again at resets, observed, saved and resumed."""

from __future__ import annotations

import math

import pytest
import torch

from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    SceneEntityCfg,
)
from manyworlds.scene import SceneCfg
from tests.entity.variants.props import floor, prop, variants

ROCKS = {f"rock_{i}": prop(i, friction=[0.3 + 0.1 * i, 0.01, 0.001]) for i in range(3)}
OBJECT = SceneEntityCfg("object")


def make_env(num_envs: int = 6, **params: object) -> ManagerBasedRlEnv:
    """Build an environment whose object is assigned again at every reset."""
    terms = {
        "which": ObservationTermCfg(func=mdp.variant_id, params={"asset_cfg": OBJECT}),
        "bits": ObservationTermCfg(
            func=mdp.variant_id, params={"one_hot": True, "asset_cfg": OBJECT}
        ),
    }
    draw = EventTermCfg(
        func=mdp.randomize_variant, mode="reset", params={"asset_cfg": OBJECT, **params}
    )
    put = EventTermCfg(func=mdp.reset_scene_to_default, mode="reset")
    cfg = ManagerBasedRlEnvCfg(
        scene=SceneCfg(
            num_envs=num_envs,
            env_spacing=0.0,
            spec_fn=floor,
            entities={"object": variants(variants=ROCKS)},
        ),
        decimation=4,
        episode_length_s=1.0,
        observations={"actor": ObservationGroupCfg(terms=terms)},
        events={"draw": draw, "put": put},
        seed=1,
    )
    return ManagerBasedRlEnv(cfg, device="cpu")


def test_resets_draw_variants_anew():
    """Reset some worlds many times: only they change, and every variant comes up."""
    env = make_env(300)
    before = env.sim.world_to_variant["object"].clone()
    counts = torch.bincount(before, minlength=3) / 300
    assert (counts - 1 / 3).abs().max() < 4 * math.sqrt(2 / 9 / 300)
    env.reset(env_ids=torch.arange(100))
    after = env.sim.world_to_variant["object"]
    assert torch.equal(after[100:], before[100:])
    assert 20 < (after[:100] != before[:100]).sum() < 95
    geom = env.scene["object"].indexing.geom_ids[0]
    friction = env.sim.model.geom_friction[:, geom, 0]
    assert torch.allclose(friction, 0.3 + 0.1 * after)


def test_weights_decide_what_is_drawn():
    """Never draw what has no weight; refuse names that there are not."""
    env = make_env(100, weights={"rock_0": 0.0, "rock_2": 3.0})
    counts = torch.bincount(env.sim.world_to_variant["object"], minlength=3).tolist()
    assert counts[0] == 0 and counts[2] > 2 * counts[1] > 0
    with pytest.raises(ValueError, match="names 'rock', which is no"):
        mdp.randomize_variant(env, None, {"rock": 1.0}, OBJECT)
    with pytest.raises(ValueError, match=r"weights is \[0.5, 0.5\]: give numbers by name"):
        mdp.randomize_variant(env, None, [0.5, 0.5], OBJECT)  # type: ignore[arg-type]


def test_entities_without_variants_are_refused():
    """Say that an entity has no variants."""
    env = make_env(2)
    env.scene["object"].cfg = None
    with pytest.raises(ValueError, match="'object' has no variants"):
        mdp.randomize_variant(env, None, asset_cfg=OBJECT)


def test_policies_can_observe_the_variant():
    """Read the index and one column for each variant."""
    env = make_env()
    obs = env.step(torch.zeros(6, 0))[0]["actor"]
    index = env.sim.world_to_variant["object"]
    assert isinstance(obs, torch.Tensor) and obs.shape == (6, 4)
    assert torch.equal(obs[:, 0], index.float())
    assert torch.equal(obs[:, 1:].argmax(dim=1), index) and (obs[:, 1:].sum(dim=1) == 1).all()


def test_a_resumed_environment_goes_on_with_the_same_variants():
    """Save, go on, load into another environment, and go on there the same way."""
    env, action = make_env(), torch.zeros(6, 0)
    env.step(action)
    state = env.state_dict()
    other = make_env()
    other.load_state_dict(state)
    for _ in range(80):  # beyond the end of an episode
        ours, theirs = env.step(action)[0]["actor"], other.step(action)[0]["actor"]
        assert isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor)
        assert torch.equal(ours, theirs)
        assert torch.equal(env.sim.data.qpos, other.sim.data.qpos)
