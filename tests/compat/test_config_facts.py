"""The comparison of configurations with facts sees what differs."""

import pytest

from manyworlds.envs import ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import RewardTermCfg
from manyworlds.scene import SceneCfg
from tests.compat.config_facts import differences

FACT = {
    "__class__": "ManagerBasedRlEnvCfg",
    "decimation": 4,
    "scene": {"__class__": "SceneCfg", "num_envs": 2},
    "events": {},
    "rewards": {
        "alive": {
            "__class__": "RewardTermCfg",
            "func": "fn:manyworlds.envs.mdp.is_alive",
            "weight": 1.0,
        },
        "rate": {
            "__class__": "RewardTermCfg",
            "func": "fn:manyworlds.envs.mdp.rewards.action_rate_l2",
            "weight": -0.1,
            "params": {"a": 1, "b": [1.0, 2.0]},
        },
    },
}


def _cfg() -> ManagerBasedRlEnvCfg:
    return ManagerBasedRlEnvCfg(
        decimation=4,
        scene=SceneCfg(num_envs=2),
        events={},
        rewards={
            "alive": RewardTermCfg(func=mdp.is_alive, weight=1.0),
            "rate": RewardTermCfg(
                func=mdp.action_rate_l2, weight=-0.1, params={"b": (1.0, 2.0), "a": 1}
            ),
        },
    )


def test_the_same_is_the_same():
    """Report nothing for equal configs, whatever the order of parameters."""
    assert list(differences(FACT, _cfg())) == []


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (lambda cfg: setattr(cfg, "decimation", 5), ".decimation"),
        (lambda cfg: setattr(cfg, "episode_length_s", 5.0), ".episode_length_s"),
        (lambda cfg: setattr(cfg.scene, "env_spacing", 3.0), ".scene.env_spacing"),
        (lambda cfg: cfg.rewards["rate"].params.update(a=True), ".rewards.rate.params.a"),
        (lambda cfg: cfg.rewards["rate"].params.update(b=(1.0,)), ".rewards.rate.params.b"),
        (lambda cfg: cfg.rewards["rate"].params.update(c=0), ".rewards.rate.params"),
        (lambda cfg: setattr(cfg.rewards["rate"], "func", mdp.is_alive), ".rewards.rate.func"),
        (lambda cfg: cfg.rewards.update(alive=cfg.rewards.pop("alive")), ".rewards"),
        (lambda cfg: cfg.rewards.pop("rate"), ".rewards"),
        (lambda cfg: setattr(cfg, "scene", None), ".scene"),
    ],
)
def test_each_difference_is_reported(edit, path):
    """Name the place of a value, an order, a class, a function, or a default that differs."""
    cfg = _cfg()
    edit(cfg)
    assert [line.split(":")[0] for line in differences(FACT, cfg)] == [path]
