"""The code on the pages that describe what this package grew from, with `mjlab` aliased.

A page's blocks are named `page-number`, from zero. Most are fragments: `names` is what their
readers have at hand. A block that cannot run has a row with the error that it ends with, and why.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.actuator import IdealPdActuatorCfg
from manyworlds.compat import mjlab
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    SceneEntityCfg,
)
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.terrains import TerrainEntityCfg
from tests.compat.code_blocks import code_blocks
from tests.compat.names import SHARED

PAGES = {path.name[:3]: path.read_text() for path in sorted((SHARED / "seeds").glob("*.txt"))}
BLOCKS = {
    f"{page}-{i}": block
    for page, text in PAGES.items()
    for i, block in enumerate(code_blocks(text))
}


@dataclass(kw_only=True)
class Block:
    """Requirements, results or errors of a block."""

    after: str = ""
    """Another block, which comes first."""
    before: str = ""
    """Code that the page assumes."""
    check: str = ""
    """Code that checks the result."""
    error: str = ""
    """The type and a part of the text of the error that it ends with."""
    why: str = ""
    """Reason why it cannot run."""


USE_DR = "from mjlab.envs.mdp import dr"
OUTLINE = "an outline: it leaves out what stands for `...`"
OLDER = "older than the interface that we follow: "

TABLE = {
    "000-0": Block(check="assert object_cfg.weights() == (1.0, 2.0)"),
    "000-1": Block(after="000-0", check="assert scene_cfg.num_envs == 4096"),
    "000-2": Block(
        after="000-1",
        before="scene_cfg.num_envs = 12; env = make_env(scene_cfg)",
        check="assert (env.sim.world_to_variant['object'] == 1).sum() == 8",
    ),
    "000-3": Block(
        after="000-0",
        before="make_a = make_b = make_c = make_cone_spec",
        check="scene_cfg = SceneCfg(num_envs=4, entities={'object': cfg})\n"
        "assert make_env(scene_cfg).sim.world_to_variant['object'].tolist() == [0, 1, 2, 0]",
    ),
    "000-4": Block(
        after="000-0",
        before="make_easy = make_hard = make_sphere_spec",
        check="scene_cfg = SceneCfg(num_envs=5, entities={'object': cfg})\n"
        "assert make_env(scene_cfg).sim.world_to_variant['object'].tolist() == [0, 0, 1, 1, 1]",
    ),
    "001-0": Block(
        check="friction = randomized('geom_friction', foot_friction)\n"
        "assert 0.3 <= friction.min() <= friction.max() <= 1.2"
    ),
    "001-1": Block(
        before=USE_DR, check="assert len(randomized('body_mass', *events.values())) == 4 * 8"
    ),
    "001-2": Block(
        check="friction = randomized('geom_friction', EventTermCfg(func=dr.geom_friction, "
        "mode='reset', params=params))\n"
        "assert 0.3 <= friction.min() <= friction.max() <= 1.2"
    ),
    "001-3": Block(
        check="friction_drift.mode = 'startup'\n"
        "friction = randomized('geom_friction', *[friction_drift] * 9)\n"
        "assert 0.01 < (friction - 1.0).abs().max() <= 0.09"
    ),
    "001-5": Block(
        before=USE_DR,
        check="damping = env.sim.model.dof_damping[:, -2:]\n"
        "assert (damping[[1, 3]] == 1.0).all() and len(damping[[0, 2]].unique()) == 4\n"
        "assert 0.8 <= damping[:, 0].min() <= damping[:, 0].max() <= 1.2",
    ),
    "001-6": Block(
        before=USE_DR, check="assert len(randomized('geom_friction', foot_friction)) == 4"
    ),
    "001-7": Block(
        check="cfg = copy.deepcopy(robot_cfg); cfg.collisions = (robot_collision,)\n"
        "geom = Scene(SceneCfg(entities={'robot': cfg}), 'cpu').spec.geom('robot/left_foot')\n"
        "assert geom.priority == 1 and geom.friction[0] == 0.6"
    ),
    "001-8": Block(before=USE_DR, check="assert len(randomized('qpos0', joint_offset)) == 4 * 2"),
    "001-9": Block(before=USE_DR, check="assert len(randomized('body_ipos', com)) == 4 * 2"),
    "001-10": Block(
        before=USE_DR,
        error="TypeError: missing 1 required keyword-only argument: 'mode'",
        why=OUTLINE,
    ),
    "001-11": Block(
        before="robot_cfg = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string('''<mujoco>"
        "<worldbody><body><geom name='a_box_b' size='1 1 1' type='box'/><geom name='a_sphere_b'"
        " size='1'/><geom name='c' size='1'/></body></worldbody></mujoco>'''))",
        check="geom_cfg.resolve(make_env(SceneCfg(entities={'robot': robot_cfg})).scene)\n"
        "assert list(geom_cfg.geom_ids) == [0, 1]",
    ),
    "001-12": Block(
        check="env = make_env(scene_cfg, events={'friction': terrain_friction})\n"
        "friction = env.sim.model.geom_friction[:, env.sim.mj_model.geom('terrain').id, 0]\n"
        "assert len(friction.unique()) == 4 and 0.3 <= friction.min() <= friction.max() <= 1.2",
    ),
    "003-0": Block(
        before="compiled_model = mujoco.MjModel.from_xml_string(XML)",
        check="assert all_positions.shape == (4096, compiled_model.nq)",
    ),
    "003-1": Block(
        check="assert robot.find_bodies('torso') == ([3], ['torso'])\n"
        "assert [b.name for b in robot.indexing.bodies][3].endswith('torso')"
    ),
    "003-2": Block(check="assert robot is scene['robot']"),
    "003-3": Block(
        before="cfg = scene_cfg\nopen('robot.xml', 'w').write(XML)",
        error="TypeError: missing 2 required positional arguments: 'model' and 'data'",
        why=OLDER + "a scene is initialised with the simulation's views",
    ),
    "003-4": Block(
        before="cfg = env_cfg",
        error="ValueError: too many values to unpack",
        why=OLDER + "step returns five values",
    ),
    "003-5": Block(error="TypeError: JointPositionActionCfg", why=OUTLINE),
    "003-6": Block(
        after="003-8",
        # With a list of bodies, the page's own function would index the wrong axis.
        before="mdp = SimpleNamespace(body_height_reward=lambda env, asset_cfg: "
        "body_height_reward(env, SimpleNamespace(name='robot', body_ids=asset_cfg.body_ids[0])))",
        check="env = make_env(scene_cfg, rewards=rewards)\n"
        "env.step(torch.zeros(4, 2))\n"
        "assert torch.allclose(env.reward_buf / env.step_dt, robot_height(env), atol=1e-2)",
    ),
    "003-7": Block(
        before="term = RewardTermCfg(func=mdp.is_alive, weight=1.0)\n"
        "term.params['asset_cfg'] = SceneEntityCfg('robot', body_names='torso')\n"
        "cfg = SimpleNamespace(rewards={'stand': term})",
        check="assert term.params['asset_cfg'].body_ids == [3]",
    ),
    "003-8": Block(
        check="asset_cfg = SceneEntityCfg('robot', body_names='torso', body_ids=3)\n"
        "assert torch.equal(body_height_reward(env, asset_cfg), robot_height(env))",
    ),
    "003-9": Block(before="from dataclasses import dataclass"),
    "003-10": Block(
        check="cfg = SimpleNamespace(name='robot', body_names='torso')\n"
        "resolve(cfg, scene)\nassert cfg.body_ids == [3]"
    ),
    "003-11": Block(check="assert list(cfg.body_ids) == [3]"),
    "003-12": Block(check="assert tuple(cfg.body_names) == ('torso', 'head')"),
    "003-13": Block(check="assert list(cfg.body_ids) == [3]"),
    "003-14": Block(error="IndentationError: unexpected indent", why=OUTLINE),
}

# The body with the number 3 is the torso, and that with the number 5 the head, as on the pages.
XML = """
<mujoco>
  <worldbody>
    <body name="pelvis">
      <freejoint/>
      <geom name="pelvis" size=".1"/>
      <body name="spine_1" pos="0 0 .1"><geom name="spine_1" size=".05"/>
        <body name="spine_2" pos="0 0 .1"><geom name="spine_2" size=".05"/>
          <body name="torso" pos="0 0 .2"><geom name="torso" type="box" size=".1 .15 .1"/>
            <body name="neck" pos="0 0 .1"><geom name="neck" size=".04"/>
              <body name="head" pos="0 0 .1"><geom name="head" size=".1"/></body>
            </body>
          </body>
        </body>
      </body>
      <body name="left_leg" pos="0 .1 0">
        <joint name="left_hip" axis="0 1 0" damping="1"/>
        <geom name="left_leg" type="capsule" fromto="0 0 0 0 0 -.3" size=".05"/>
        <body name="left_foot" pos="0 0 -.3">
          <joint name="left_knee" axis="0 1 0" damping="1"/>
          <geom name="left_foot" type="box" size=".1 .05 .02"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def make_env(scene_cfg: SceneCfg, **terms: Any) -> ManagerBasedRlEnv:
    """Build an environment that acts on the robot's legs, if there is a robot with legs."""
    return ManagerBasedRlEnv(env_cfg(scene_cfg, **terms), device="cpu")


def env_cfg(scene_cfg: SceneCfg, **terms: Any) -> ManagerBasedRlEnvCfg:
    """Configure an environment."""
    robot = scene_cfg.entities.get("robot")
    if robot is not None and robot.articulation is not None:
        joints = {"asset_cfg": SceneEntityCfg("robot")}
        terms["actions"] = {
            "legs": mdp.JointEffortActionCfg(entity_name="robot", actuator_names=(".*",))
        }
        observed = {"joints": ObservationTermCfg(func=mdp.joint_pos_rel, params=joints)}
        terms["observations"] = {"actor": ObservationGroupCfg(terms=observed)}
    return ManagerBasedRlEnvCfg(decimation=1, scene=scene_cfg, seed=1, **terms)


def randomized(field: str, *terms: EventTermCfg) -> torch.Tensor:
    """Build an environment with events; return what differs from the compiled model."""
    robot = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(XML))
    scene_cfg = SceneCfg(num_envs=4, entities={"robot": robot})
    env = make_env(scene_cfg, events={f"term_{i}": term for i, term in enumerate(terms)})
    values = getattr(env.sim.model, field)
    return values[values != env.sim.get_default_field(field)]


def robot_height(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Height of the robot's torso [m], shape [num_envs]."""
    return env.sim.data.xpos[:, env.sim.mj_model.body("robot/torso").id, 2]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Files and names that the readers of a page have."""
    legs = IdealPdActuatorCfg(target_names_expr=(".*",), stiffness=0.0, damping=0.0)
    robot_cfg = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(XML),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 1.0)),
        articulation=EntityArticulationInfoCfg(actuators=(legs,)),
    )
    terrain_cfg = TerrainEntityCfg()
    scene_cfg = SceneCfg(num_envs=4, entities={"robot": robot_cfg}, terrain=terrain_cfg)
    env = make_env(scene_cfg)
    return {
        **{thing.__name__: thing for thing in (EntityCfg, EventTermCfg, ManagerBasedRlEnv)},
        **{thing.__name__: thing for thing in (ManagerBasedRlEnvCfg, RewardTermCfg, Scene)},
        **{thing.__name__: thing for thing in (SceneCfg, SceneEntityCfg, SimpleNamespace)},
        **{thing.__name__: thing for thing in (Simulation, copy, make_env, mdp, mujoco, torch)},
        **{
            thing.__name__: thing
            for thing in (mdp.JointPositionActionCfg, randomized, robot_height)
        },
        "XML": XML,
        "action": torch.zeros(4, 2),
        "env": env,
        "env_cfg": env_cfg(scene_cfg),
        "env_ids": torch.tensor([0, 2]),
        "mdp": mdp,
        "robot": env.scene["robot"],
        "robot_cfg": robot_cfg,
        "scene": env.scene,
        "scene_cfg": scene_cfg,
        "terrain_cfg": terrain_cfg,
    }


@pytest.fixture(autouse=True)
def _alias() -> Iterator[None]:
    mjlab.install()
    yield
    mjlab.uninstall()


def _run(name: str, namespace: dict[str, Any]) -> None:
    block = TABLE.get(name, Block())
    if block.after:
        _run(block.after, namespace)
    exec(block.before, namespace)
    exec(BLOCKS[name].replace('device="cuda"', 'device="cpu"'), namespace)
    exec(block.check, namespace)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block(name, names, tmp_path, monkeypatch):
    """Run a block as it stands, on the CPU, or see it fail as its row says."""
    monkeypatch.chdir(tmp_path)
    expected = TABLE.get(name, Block())
    assert bool(expected.error) == bool(expected.why)
    if not expected.error:
        return _run(name, dict(names))
    kind, text = expected.error.split(": ", 1)
    with pytest.raises(Exception, match=re.escape(text)) as caught:
        _run(name, dict(names))
    assert caught.type.__name__ == kind, f"{expected.why}: {caught.value!r}"


@pytest.mark.skipif(
    not PAGES, reason=f"{SHARED / 'seeds'} is absent: point MANYWORLDS_SHARED at it"
)
def test_all_code_is_found():
    """Find each import that the pages show, and no row without a block."""
    assert TABLE.keys() <= BLOCKS.keys() and len(BLOCKS) >= 31
    code = "\n".join(BLOCKS.values())
    shown = re.findall(r"^\s*((?:from|import) mjlab\S*.*[^#])$", "\n".join(PAGES.values()), re.M)
    assert len(shown) >= 8 and [line for line in shown if line not in code] == []
