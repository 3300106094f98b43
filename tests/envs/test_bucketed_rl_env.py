"""Buckets: worlds of different topology in one environment."""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import torch

from manyworlds.actuator import IdealPdActuatorCfg, XmlActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, VariantEntityCfg
from manyworlds.envs import BucketedRlEnv, ManagerBasedRlEnv, ManagerBasedRlEnvCfg, make_env, mdp
from manyworlds.envs.buckets import _merged, bucket_cfg, bucket_cfgs
from manyworlds.managers import EventTermCfg, ObservationTermCfg
from manyworlds.scene import SceneCfg
from manyworlds.tasks import load_env_cfg
from manyworlds.terrains import TerrainEntityCfg
from tests.envs.bucket_tasks import alike_cfg, chain_scene, chains_cfg
from tests.robots import robot_file

pytestmark = pytest.mark.filterwarnings("ignore:dr.body_mass does not scale inertia")

INTERLEAVED = np.array([0, 1, 2, 2, 1, 0, 0, 2, 1, 1, 2, 0])


def rollout(env: ManagerBasedRlEnv | BucketedRlEnv, rows: torch.Tensor, steps: int = 40) -> list:
    """Return observations, rewards and ends of some steps, with actions that depend on the id."""
    generator = torch.Generator().manual_seed(0)
    seen = []
    for _ in range(steps):
        actions = torch.randn(64, 4, generator=generator)[rows]
        obs, rewards, terminated, truncated, extras = env.step(actions)
        final = extras.get("final_obs", obs)["actor"].clone()
        final[~(terminated | truncated)] = 0.0
        whole: Any = obs["whole"]  # by term
        seen.append([obs["actor"], whole["vel"], rewards, terminated, truncated, final])
    return seen


@pytest.mark.parametrize(
    ("assignment", "delay", "engine"),
    [
        ((), 0, "native"),
        (INTERLEAVED, 2, "native"),
        pytest.param(INTERLEAVED, 2, "warp", marks=pytest.mark.slow),
    ],
)
def test_worlds_equal_those_of_their_bucket_alone(assignment: object, delay: int, engine: Any):
    """Step each bucket alone, and get the same bits as in the environment of all buckets."""
    cfg = chains_cfg(delay=delay)
    cfg.sim.engine = engine
    cfg.scene.bucket_assignment = assignment  # type: ignore[assignment]
    assert_equal_to_buckets(cfg)


@pytest.mark.parametrize("engine", ["native", pytest.param("warp", marks=pytest.mark.slow)])
def test_worlds_of_merged_buckets_equal_those_of_their_bucket_alone(engine: Any):
    """Share models, and get the same bits on the native engine as with one for each bucket."""
    cfg = alike_cfg()
    cfg.sim.engine = engine
    cfg.scene.bucket_assignment = np.array([0, 1, 2, 4, 3, 3, 0, 4, 1, 1, 2, 0])
    assert_equal_to_buckets(cfg, exact=engine == "native")


def assert_equal_to_buckets(cfg: ManagerBasedRlEnvCfg, exact: bool = True) -> None:
    """Compare an environment with those of its buckets."""
    together = BucketedRlEnv(cfg, "cpu")
    seen = rollout(together, torch.arange(12))
    assert any(step[4].any() for step in seen)
    for index, (name, part) in enumerate(bucket_cfgs(cfg).items()):
        rows = (together.world_to_bucket == index).nonzero().squeeze(1)
        assert part.scene.world_ids == tuple(rows.tolist())
        alone = rollout(ManagerBasedRlEnv(part, "cpu"), rows)
        for ours, theirs in zip(seen, alone, strict=True):
            for a, b in zip(ours, theirs, strict=True):
                if exact:
                    assert torch.equal(a[rows], b), name
                else:  # derived fields of variants are those of double precision
                    assert torch.allclose(a[rows].float(), b.float(), atol=1e-3), name
    together.close()


def test_merged_buckets_share_a_model():
    """Name the buckets of each model, and take each world's own bucket for logs and names."""
    cfg = alike_cfg()
    cfg.scene.bucket_assignment = np.arange(12) % 5
    env = BucketedRlEnv(cfg, "cpu")
    assert env.buckets["two"] is env.buckets["long two"]
    assert env.buckets["three"] is env.buckets["short three"]
    assert env.buckets["two"] is not env.buckets["four"]
    assert [env.bucket_of(world) for world in (0, 3, 8, 11)] == [
        ("two", 0),
        ("long two", 1),
        ("long two", 3),
        ("three", 4),
    ]
    ball = env.buckets["three"].scene.entity("ball")
    heights = ball.data.default_root_state[:, 2]
    assert heights.tolist() == pytest.approx([1.0, 0.5, 1.0, 0.5, 1.0])
    stiffness = env.buckets["two"].scene.entity("robot").actuators[0].stiffness[:, 0]
    assert stiffness.tolist() == pytest.approx([4.0, 6.0, 4.0, 6.0, 4.0])
    returns = torch.zeros(12)
    for _ in range(15):
        _, reward, _, _, extras = env.step(torch.zeros(12, 4))
        returns += reward
    log = extras["log"]
    assert log["Episode_Termination/time_out"] == 12
    for index, name in enumerate(cfg.scene.buckets):
        mean = returns[env.world_to_bucket == index].mean() / cfg.episode_length_s
        assert log[f"Bucket_Reward/{name}"].item() == pytest.approx(mean.item())
    with pytest.raises(ValueError, match=r"saved state has the buckets .*'two\+long two'"):
        chains = chains_cfg()
        BucketedRlEnv(chains, "cpu").load_state_dict(env.state_dict())
    env.close()


def changed(spec_fn: Callable[[], mujoco.MjSpec], factor: float) -> mujoco.MjSpec:
    """Return a robot with other masses, whose bodies are out of balance."""
    spec = spec_fn()
    for body in spec.bodies:
        if body.explicitinertial:
            body.mass *= factor
            body.ipos[0] += 0.01 * factor
    return spec


def test_real_robots_can_be_merged():
    """Merge a robot of many meshes with heavier and stiffer ones: each has the bits of its own."""
    robot_file("unitree_go1/go1.xml")
    task = load_env_cfg("Velocity-Flat-Go1")
    buckets: dict[str, SceneCfg] = {}
    for i, factor in enumerate((1.0, 1.2, 0.8)):
        scene = copy.deepcopy(task.scene)
        robot = scene.entities["robot"]
        robot.spec_fn = functools.partial(changed, robot.spec_fn, factor)
        assert robot.articulation is not None
        for actuator in robot.articulation.actuators:
            actuator.stiffness *= factor  # type: ignore[attr-defined]
        buckets[f"robot{i}"] = scene
    task.scene = SceneCfg(num_envs=6, buckets=buckets, merge_buckets=True)
    task.seed = 2
    together = BucketedRlEnv(task, "cpu")
    assert len({id(env) for env in together.buckets.values()}) == 1
    generator = torch.Generator().manual_seed(0)
    actions = torch.randn(20, 6, 12, generator=generator)
    seen = [together.step(action) for action in actions]
    for index, part in enumerate(bucket_cfgs(task).values()):
        rows = (together.world_to_bucket == index).nonzero().squeeze(1)
        alone = ManagerBasedRlEnv(part, "cpu")
        for action, (obs, reward, *_) in zip(actions, seen, strict=True):
            own, own_reward, *_ = alone.step(action[rows])
            assert torch.equal(own_reward, reward[rows])
            assert torch.equal(own["actor"], obs["actor"][rows])
    together.close()


def heightfield(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give all buckets cells of a terrain, which are divided among the worlds of a bucket."""
    for scene in cfg.scene.buckets.values():
        scene.terrain = TerrainEntityCfg(terrain_type="generator")


def another_sensor(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give two buckets no sensor."""
    for name in ("two", "three"):
        cfg.scene.buckets[name].kept_sensors = ()


def another_law(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give the robots actuators whose law is Python's, with gains of their own."""
    for i, scene in enumerate(cfg.scene.buckets.values()):
        law = IdealPdActuatorCfg(target_names_expr=(".*",), stiffness=1.0 + i, damping=0.1)
        scene.entities["robot"].articulation = EntityArticulationInfoCfg(actuators=(law,))


def another_command(cfg: ManagerBasedRlEnvCfg) -> None:
    """Let actuators of the same model follow other targets."""
    fields: tuple[Any, ...] = ("position", "effort", "velocity", "effort", "velocity")
    for scene, field in zip(cfg.scene.buckets.values(), fields, strict=True):
        robot = scene.entities["robot"]
        robot.spec_fn = functools.partial(with_motors, robot.spec_fn)
        law = XmlActuatorCfg(target_names_expr=(".*",), command_field=field)
        robot.articulation = EntityArticulationInfoCfg(actuators=(law,))


def with_motors(spec_fn: Callable[[], mujoco.MjSpec]) -> mujoco.MjSpec:
    """Return a chain with a motor on each hinge."""
    spec = spec_fn()
    for joint in spec.joints:
        trntype = mujoco.mjtTrn.mjTRN_JOINT
        spec.add_actuator(name=joint.name, target=joint.name, trntype=trntype)
    return spec


def one_limit(cfg: ManagerBasedRlEnvCfg) -> None:
    """Limit the efforts of two buckets."""
    for name in ("two", "three"):
        articulation = cfg.scene.buckets[name].entities["robot"].articulation
        assert articulation is not None
        articulation.actuators[0].effort_limit = 3.0  # type: ignore[attr-defined]


def keyframes(cfg: ManagerBasedRlEnvCfg) -> None:
    """Take initial positions from keyframes, which variants do not have."""
    for scene in cfg.scene.buckets.values():
        scene.entities["robot"].init_state.joint_pos = None


def another_start(cfg: ManagerBasedRlEnvCfg) -> None:
    """Let joints of the robots start elsewhere."""
    for i, scene in enumerate(cfg.scene.buckets.values()):
        scene.entities["robot"].init_state.joint_pos = {".*": 0.1 * i}


def variants_within(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give the robots variants, which are divided among the worlds of a bucket."""
    for scene in cfg.scene.buckets.values():
        robot = scene.entities["robot"]
        scene.entities["robot"] = VariantEntityCfg(variants={"a": robot, "b": robot})


@pytest.mark.parametrize(
    "change",
    [
        heightfield,
        another_sensor,
        another_law,
        another_command,
        one_limit,
        keyframes,
        another_start,
        variants_within,
    ],
)
def test_other_buckets_keep_their_model(change: Callable[[ManagerBasedRlEnvCfg], None]):
    """Merge no buckets that would differ in more than a world's rows of model fields."""
    cfg = alike_cfg()
    change(cfg)
    assert [names for names in _merged(cfg.scene) if len(names) > 1] == []


def test_columns_mean_the_same_in_all_buckets():
    """Pad each term at its end, and mask each pattern of widths once."""
    env = make_env(chains_cfg(), "cpu")
    assert isinstance(env, BucketedRlEnv)
    assert list(env.buckets) == ["two", "three", "four"]
    assert env.single_action_space.shape == (4,)
    obs = env.step(torch.zeros(12, 4))[0]
    for row, (links, ball) in {0: (2, False), 4: (3, True), 8: (4, False)}.items():
        name, place = env.bucket_of(row)
        manager = env.buckets[name].observation_manager
        terms = dict(manager.get_active_iterable_terms(place))
        assert len(terms["actor/pos"]) == 4 and terms["actor/pos"][links:] == [0.0] * (4 - links)
        assert len(terms["actor/vel"]) == 8
        assert (terms["actor/ball"] != [0.0] * 3) == ball
        mask = torch.tensor(terms["actor/present"])
        expected = [[i < links for i in range(4)], [i < 2 * links for i in range(8)], [ball] * 3]
        assert mask.tolist() == [float(flag) for part in expected for flag in part]
        assert torch.equal(obs["actor"][row, -15:], mask)
    env.close()


def test_columns_that_a_bucket_lacks_have_no_effect():
    """Ignore the actions of joints that are not there, and store them as zero."""
    cfg = chains_cfg()
    actions = torch.randn(12, 4)
    results = []
    for change in (0.0, 100.0):
        env = BucketedRlEnv(cfg, "cpu")
        given = actions.clone()
        given[:4, 2:] += change  # of the chains with two links
        results.append(env.step(given)[0]["actor"])
        assert not env.buckets["two"].action_manager.action[:, 2:].any()
        env.close()
    assert torch.equal(*results)


@pytest.mark.filterwarnings("ignore:The actuators of the joints")
def test_several_terms_are_padded_each():
    """Observe the last action in the columns that the padded terms have, without a mask of it."""
    cfg = chains_cfg()
    cfg.actions["more"] = mdp.JointVelocityActionCfg(
        entity_name="robot", actuator_names=("hinge[13]",)
    )
    env = BucketedRlEnv(cfg, "cpu")
    obs = env.step(torch.ones(12, 6))[0]["actor"]
    assert obs.shape[1] == 3 * 4 + 2 * 3 + 6 + 15
    columns = {0: [1, 1, 0, 0, 1, 0], 4: [1, 1, 1, 0, 1, 0], 8: [1, 1, 1, 1, 1, 1]}
    for row, expected in columns.items():
        assert obs[row, 18:24].tolist() == expected
    env.close()


@pytest.mark.parametrize("make_cfg", [functools.partial(chains_cfg, delay=2), alike_cfg])
def test_resumes_bit_for_bit(make_cfg: Callable[[], ManagerBasedRlEnvCfg]):
    """Continue from a saved state as without a pause."""
    cfg = make_cfg()
    first = BucketedRlEnv(cfg, "cpu")
    rollout(first, torch.arange(12), 20)
    state = copy.deepcopy(first.state_dict())
    cfg.seed = 99
    second = BucketedRlEnv(cfg, "cpu")
    second.load_state_dict(state)
    for a, b in zip(
        rollout(first, torch.arange(12), 20), rollout(second, torch.arange(12), 20), strict=True
    ):
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    with pytest.raises(ValueError, match="saved state has the buckets"):
        second.load_state_dict({"buckets": {}, "random": {}})
    first.close()
    second.close()


@pytest.mark.parametrize("make_cfg", [chains_cfg, alike_cfg])
def test_processes_share_a_batch(make_cfg: Callable[[], ManagerBasedRlEnvCfg]):
    """Divide the worlds over two processes, which may lack buckets, without a change of bits."""
    cfg = make_cfg()
    whole = BucketedRlEnv(cfg, "cpu")
    expected = rollout(whole, torch.arange(12), 20)
    whole.close()
    for first in (0, 6):
        part = copy.deepcopy(cfg)
        part.scene.num_envs = 6
        part.scene.first_world = first
        part.scene.total_envs = 12
        env = BucketedRlEnv(part, "cpu")
        assert len(env.buckets) < len(cfg.scene.buckets)
        rows = torch.arange(first, first + 6)
        for ours, theirs in zip(rollout(env, rows, 20), expected, strict=True):
            assert torch.equal(ours[0], theirs[0][rows])
            assert torch.equal(ours[2], theirs[2][rows])
        env.close()


def test_logs_are_of_all_buckets():
    """Count ended episodes of all buckets, and log the rewards of each."""
    env = BucketedRlEnv(chains_cfg(), "cpu")
    for _ in range(14):
        env.step(torch.zeros(12, 4))
    log = env.step(torch.zeros(12, 4))[4]["log"]
    assert log["Episode_Termination/time_out"] == 12
    parts = [log[f"Bucket_Reward/{name}"] for name in env.buckets]
    balls = log["Episode_Reward/ball"]  # of one bucket of three
    mean = torch.stack(parts).mean().item()
    assert mean == pytest.approx((log["Episode_Reward/slow"] + balls / 3).item())
    env.close()


def test_episode_lengths_can_be_set():
    """Give each world's episode another length, as learners do at first."""
    cfg = chains_cfg()
    cfg.scene.bucket_assignment = INTERLEAVED
    env = BucketedRlEnv(cfg, "cpu")
    env.episode_length_buf = torch.arange(12)
    assert env.episode_length_buf.tolist() == list(range(12))
    env.step(torch.zeros(12, 4))
    assert env.reset_buf.tolist() == [False] * 12
    assert env.episode_length_buf.tolist() == list(range(1, 13))
    env.reset(env_ids=torch.tensor([3, 7]))
    assert env.episode_length_buf[[3, 7]].tolist() == [0, 0]
    assert env.episode_length_buf[[2, 8]].tolist() == [3, 9]
    env.close()


def test_one_bucket_plays_alone():
    """Give a bucket alone the shapes that it has among the others."""
    cfg = bucket_cfg(chains_cfg(), "two", num_envs=3)
    env = ManagerBasedRlEnv(cfg, "cpu")
    assert env.single_observation_space["actor"].shape == (37,)
    assert env.single_action_space.shape == (4,)
    assert env.scene.entity("robot").num_joints == 2
    with pytest.raises(ValueError, match=r"no bucket 'tow'.*two, three, four.*two"):
        bucket_cfg(chains_cfg(), "tow", 1)


def remove_optional(cfg: ManagerBasedRlEnvCfg) -> None:
    """Require the ball in all buckets."""
    cfg.rewards["ball"].optional = False


def add_scalar_term(cfg: ManagerBasedRlEnvCfg) -> None:
    """Observe something with another number of dimensions in one bucket."""

    def odd(env: ManagerBasedRlEnv) -> torch.Tensor:
        links = env.scene.entity("robot").num_joints
        return torch.zeros(env.num_envs, *([links] if links == 2 else [links, 1]))

    cfg.observations["whole"].terms["odd"] = ObservationTermCfg(func=odd)


def take_name(cfg: ManagerBasedRlEnvCfg) -> None:
    """Use the name of the mask."""
    terms = cfg.observations["actor"].terms
    terms["present"] = terms["pos"]


def nested(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give a bucket a bucket."""
    cfg.scene.buckets["two"].buckets = {"one": chain_scene(1)}


def rename(cfg: ManagerBasedRlEnvCfg) -> None:
    """Name a bucket like a file in a folder."""
    cfg.scene.buckets["one/two"] = cfg.scene.buckets.pop("two")


def beside(cfg: ManagerBasedRlEnvCfg) -> None:
    """Give the whole scene an entity."""
    cfg.scene.entities = dict(cfg.scene.buckets["two"].entities)


def assign(value: object) -> Callable[[ManagerBasedRlEnvCfg], None]:
    """Return a change of the assignment."""

    def change(cfg: ManagerBasedRlEnvCfg) -> None:
        cfg.scene.bucket_assignment = value  # type: ignore[assignment]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            remove_optional,
            "'two': RewardManager term 'ball': .*'ball' not found.* Give the term optional=True",
        ),
        (add_scalar_term, "term 'whole/odd' has shape .2,. in bucket 'two' and .3, 1. in bucket"),
        (take_name, "group 'actor' has a term 'present', which is the name of the mask"),
        (nested, "Bucket 'two' has buckets of its own"),
        (rename, "has a bucket 'one/two': a name is a string that is not empty and has no slash"),
        (beside, "SceneCfg.entities has no effect beside SceneCfg.buckets: set it in each"),
        (assign({"for": 2.0}), "names 'for', which is no bucket.*four"),
        (assign((1.0, 2.0)), "has 2 weights, but there are 3 buckets: give one each"),
        (assign((1.0, 0.0, 1.0)), "Bucket 'three' has weight 0.0: give a positive number"),
        (assign((1.0, 1e-9, 1.0)), "Bucket 'three' gets none of 12 worlds: ask for more"),
        (assign(np.array([0, 1, 2])), "bucket_assignment has 3 indices but nworld=12"),
        (assign(np.full(12, 3)), "has bucket index 3, but there are 3 buckets"),
        (assign(lambda n: [0] * n), "Bucket 'three' gets none of 12 worlds"),
    ],
)
def test_buckets_must_fit(change: Callable[[ManagerBasedRlEnvCfg], None], message: str):
    """Name what is wrong in one sentence, before the first step."""
    cfg = chains_cfg()
    change(cfg)
    with pytest.raises(ValueError, match=message):
        BucketedRlEnv(cfg, "cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (assign([0, 1, 2] * 4), "bucket_assignment is of type list: give a tuple of weights"),
        (lambda cfg: setattr(cfg.scene, "buckets", ["two"]), "buckets is of type list: give a"),
        (
            lambda cfg: cfg.scene.buckets.update(two=cfg.scene.buckets["two"].entities["robot"]),
            "Bucket 'two' is of type EntityCfg: give a SceneCfg",
        ),
    ],
)
def test_types_of_buckets(change: Callable[[ManagerBasedRlEnvCfg], None], message: str):
    """Say what to give instead of another type."""
    cfg = chains_cfg()
    change(cfg)
    with pytest.raises(TypeError, match=message):
        BucketedRlEnv(cfg, "cpu")


def test_weights_by_name():
    """Divide the worlds by weights of some buckets; the others have 1."""
    cfg = chains_cfg()
    cfg.scene.bucket_assignment = {"four": 2.0}
    env = BucketedRlEnv(cfg, "cpu")
    assert env.world_to_bucket.tolist() == [0] * 3 + [1] * 3 + [2] * 6
    env.close()


def test_merged_buckets_are_not_exchanged():
    """Refuse to make a world's robot that of another bucket, as without merging."""
    cfg = alike_cfg()
    cfg.events["exchange"] = EventTermCfg(func=mdp.randomize_variant, mode="reset")
    with pytest.raises(ValueError, match="Entity 'robot' has no variants"):
        BucketedRlEnv(cfg, "cpu")


def test_other_classes_name_the_right_one():
    """Tell that a plain environment has one model."""
    with pytest.raises(ValueError, match=re.escape("build the environment with make_env(cfg)")):
        ManagerBasedRlEnv(chains_cfg(), "cpu")
    cfg = chains_cfg()
    cfg.scene.buckets = {}
    with pytest.raises(ValueError, match="buckets is empty"):
        BucketedRlEnv(cfg, "cpu")
