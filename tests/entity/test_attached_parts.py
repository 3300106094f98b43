"""Parts that were attached with a prefix: found with and without it, wherever names are given."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import mujoco
import pytest
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp import dr
from manyworlds.managers import SceneEntityCfg
from manyworlds.scene import SceneCfg
from manyworlds.sensor import ContactMatch, ContactSensorCfg
from tests.robots import robot_file


def _bare(path: str) -> mujoco.MjSpec:
    """Load a robot without its options, actuators, keyframes, and what is in its world."""
    spec = mujoco.MjSpec.from_file(path)
    spec.option = mujoco.MjSpec().option
    for elements in (spec.actuators, spec.keys, spec.worldbody.geoms, spec.sensors):
        for element in list(elements):
            spec.delete(element)
    return spec


def carrier(base: str, body: str, *prefixes: str) -> Callable[[], mujoco.MjSpec]:
    """Make a function that puts a YAM arm on a body for each prefix."""
    arm = str(robot_file("i2rt_yam/yam.xml"))

    def spec() -> mujoco.MjSpec:
        parent = _bare(base)
        for i, prefix in enumerate(prefixes):
            frame = parent.body(body).add_frame(pos=[0.2 * i, 0.0, 0.2])
            parent.attach(_bare(arm), prefix=prefix, frame=frame)
        return parent

    return spec


def _dog() -> str:
    return str(robot_file("unitree_go1/go1.xml"))


def _gymnasium(name: str) -> str:
    package = find_spec("gymnasium")
    if package is None or not package.submodule_search_locations:
        pytest.skip("gymnasium is not installed")
    return str(Path(package.submodule_search_locations[0], "envs", "mujoco", "assets", name))


@pytest.mark.parametrize("robot", ["go1", "ant"])
def test_every_place_that_takes_names_finds_the_part(robot: str):
    """Drive, place, select, randomize and watch the joints of one arm by their own names."""
    base, body = (_dog(), "trunk") if robot == "go1" else (_gymnasium("ant.xml"), "torso")
    motor = BuiltinPositionActuatorCfg(
        target_names_expr=("joint[12]",), stiffness=20.0, damping=1.0
    )
    cfg = EntityCfg(
        spec_fn=carrier(base, body, "left_arm/"),
        init_state=EntityCfg.InitialStateCfg(
            joint_pos={"joint2": 0.75, "left_arm/joint3": 0.5}, joint_vel={"joint1": 0.25}
        ),
        articulation=EntityArticulationInfoCfg(actuators=(motor,)),
    )
    touch = ContactSensorCfg(
        name="touch",
        primary=ContactMatch(mode="body", pattern="link_[34]", exclude=("link_4",), entity="robot"),
    )
    env = ManagerBasedRlEnv(
        ManagerBasedRlEnvCfg(
            decimation=1,
            scene=SceneCfg(num_envs=4, entities={"robot": cfg}, sensors=(touch,)),
            actions={
                "arm": mdp.JointPositionActionCfg(
                    entity_name="robot", actuator_names=("joint1", "joint2"), scale={"joint2": 3.0}
                )
            },
            seed=0,
        ),
        device="cpu",
    )
    entity = env.scene["robot"]
    full = [f"left_arm/joint{i}" for i in (1, 2, 3)]
    ids, names = entity.find_joints(("joint1", "left_arm/joint2", "joint3"))
    assert names == full and ids == [entity.joint_names.index(name) for name in full]
    assert entity.find_bodies("link_4")[1] == ["left_arm/link_4"]
    assert entity.find_joints_by_actuator_names("joint1")[1] == full[:1]
    assert entity.actuators[0].target_names == full[:2]
    assert entity.data.default_joint_pos[0, ids].tolist() == [0.0, 0.75, 0.5]
    assert entity.data.default_joint_vel[0, ids].tolist() == [0.25, 0.0, 0.0]
    assert env.action_manager.get_term("arm").scale[0].tolist() == [1.0, 3.0]
    chosen = SceneEntityCfg("robot", joint_names=("joint3", "joint1"), preserve_order=True)
    chosen.resolve(env.scene)
    assert chosen.joint_names == (full[2], full[0]) and chosen.joint_ids == [ids[2], ids[0]]
    dr.joint_damping(env, None, ranges={"joint2": (7.0, 7.0)}, operation="abs")
    dofs = env.sim.model.dof_damping[:, entity.indexing.joint_v_adr]
    assert (dofs[:, ids[1]] == 7.0).all() and (dofs == 7.0).sum() == 4
    assert env.scene["touch"].primary_names == ["left_arm/link_3"]


def test_two_equal_parts_need_their_prefix():
    """Name both elements that a name without prefix may stand for, and who asked."""
    make = carrier(_dog(), "trunk", "left/", "right/")
    entity = EntityCfg(spec_fn=make).build()
    both = r"'joint1' is the end of \['left/joint1', 'right/joint1'\]"
    with pytest.raises(ValueError, match=rf"select by joint name.*{both}"):
        entity.find_joints("joint1")
    assert entity.find_joints("right/joint1")[1] == ["right/joint1"]
    assert entity.find_joints("joint1", joint_subset=["left/joint2", "left/joint1"])[0] == [1]
    assert entity.find_joints(".*/joint1")[1] == ["left/joint1", "right/joint1"]
    motor = BuiltinPositionActuatorCfg(target_names_expr=("joint1",), stiffness=20.0, damping=1.0)
    driven = EntityArticulationInfoCfg(actuators=(motor,))
    with pytest.raises(ValueError, match=rf"BuiltinPositionActuatorCfg: .*{both}"):
        EntityCfg(spec_fn=make, articulation=driven).build()
    init = EntityCfg.InitialStateCfg(joint_pos={"joint1": 0.5})
    with pytest.raises(ValueError, match=both):
        EntityCfg(spec_fn=make, init_state=init).build().initial_qpos()


def test_dogs_joints_go_before_those_of_a_part():
    """Take whole names for what is meant, and keep what patterns selected before."""
    entity = EntityCfg(spec_fn=carrier(_dog(), "trunk", "FR/")).build()
    assert len(entity.find_joints("FR_.*")[0]) == 3
    assert entity.find_joints("[^/]*_joint")[1] == [n for n in entity.joint_names if "/" not in n]
    assert torch.tensor(entity.find_joints(".*")[0]).diff().eq(1).all()
