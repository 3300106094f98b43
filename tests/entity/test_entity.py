"""Entities: names, indexing, initial state, writers and actuators."""

import mujoco
import pytest
import torch

from manyworlds.actuator import BuiltinMotorActuatorCfg, BuiltinPositionActuatorCfg
from manyworlds.entity import Entity, EntityArticulationInfoCfg, EntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from manyworlds.spec.config import (
    CameraCfg,
    CollisionCfg,
    GeomCfg,
    LightCfg,
    MaterialCfg,
    TextureCfg,
)

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="base">
      <geom name="base" size=".1"/>
      <body name="upper" pos="0 0 .2">
        <joint name="shoulder" axis="0 1 0" range="-1 1" limited="true"/>
        <geom size=".05"/>
        <body name="lower" pos="0 0 .3">
          <joint name="elbow" axis="0 1 0"/>
          <geom name="hand" size=".05"/>
          <site name="tip" pos="0 0 .1"/>
        </body>
      </body>
    </body>
  </worldbody>
  <keyframe><key qpos="0.25 -0.5"/></keyframe>
</mujoco>
"""
BALL = """
<mujoco>
  <worldbody>
    <body name="ball"><freejoint/><geom name="ball" size=".1"/></body>
  </worldbody>
</mujoco>
"""


def arm_cfg(**kwargs) -> EntityCfg:
    """Configure an arm with a motor at each joint."""
    kwargs.setdefault(
        "articulation",
        EntityArticulationInfoCfg(
            actuators=(BuiltinMotorActuatorCfg(target_names_expr=(".*",), effort_limit=5.0),),
            soft_joint_pos_limit_factor=0.5,
        ),
    )
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(ARM), **kwargs)


def ball_cfg(**kwargs) -> EntityCfg:
    """Configure a free ball."""
    return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(BALL), **kwargs)


def build(num_envs: int = 3, **entities: EntityCfg) -> tuple[Scene, Simulation]:
    """Build a scene and its simulation."""
    scene = Scene(SceneCfg(num_envs=num_envs, entities=entities), "cpu")
    sim = Simulation(num_envs, spec=scene.spec)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    return scene, sim


def test_names_leave_out_prefix_world_and_free_joints():
    """List names as the entity's author wrote them."""
    scene, _ = build(ball=ball_cfg(), arm=arm_cfg())
    arm, ball = scene["arm"], scene["ball"]
    assert arm.body_names == ("mocap_base", "base", "upper", "lower")
    assert arm.joint_names == ("shoulder", "elbow")
    assert arm.geom_names == ("base", "geom_0", "hand")
    assert arm.actuator_names == ("shoulder", "elbow")
    assert (arm.num_bodies, arm.num_sites, ball.num_joints) == (4, 1, 0)
    assert arm.is_fixed_base and not ball.is_fixed_base


def test_a_mocap_body_of_the_model_is_a_base():
    """Place a model's own mocap body where the initial state says, without another one."""
    xml = BALL.replace('<body name="ball"><freejoint/>', '<body name="ball" mocap="true">')
    init = EntityCfg.InitialStateCfg(pos=(0.0, 0.0, 1.0))
    scene, sim = build(
        post=EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(xml), init_state=init)
    )
    post = scene["post"]
    assert (post.is_mocap, post.is_fixed_base, post.is_articulated) == (True, True, False)
    assert post.body_names == ("ball",) and post.data.default_root_state.shape == (3, 7)
    sim.forward()
    assert post.data.root_link_pos_w.tolist() == [[0.0, 0.0, 1.0]] * 3
    post.write_mocap_pose_to_sim(torch.tensor([[1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0]]), [2])
    sim.forward()
    assert post.data.root_link_pos_w[:, 2].tolist() == [1.0, 1.0, 3.0]


def test_ball_joints_start_where_patterns_or_keyframe_say():
    """Read orientations at reset from a table or from the first keyframe."""
    text = ARM.replace('name="elbow" axis="0 1 0"', 'name="elbow" type="ball"')
    text = text.replace('qpos="0.25 -0.5"', 'qpos="0.25 0 0 1 0"')

    def cfg(**init) -> EntityCfg:
        state = EntityCfg.InitialStateCfg(**init)
        return EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(text), init_state=state)

    scene, sim = build(
        a=cfg(joint_pos={"sh.*": 0.5}, ball_joint_quat={"el.*": (0.0, 1.0, 0.0, 0.0)}),
        b=cfg(joint_pos=None),
    )
    quats = [scene[name].data.default_ball_joint_quat[0, 0].tolist() for name in "ab"]
    assert quats == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert sim.mj_model.key("init_state").qpos.tolist() == [0.5, 0, 1, 0, 0, 0.25, 0, 0, 1, 0]
    assert scene["a"].all_joint_names == ("shoulder", "elbow")
    assert scene["a"].joint_names == ("shoulder",)


def test_find_selects_every_kind():
    """Select by pattern within a kind, and within a subset."""
    arm = Entity(arm_cfg())
    assert arm.find_bodies(".*er") == ([2, 3], ["upper", "lower"])
    assert arm.find_joints("elbow") == ([1], ["elbow"])
    assert arm.find_joints("elbow", joint_subset=("elbow",)) == ([0], ["elbow"])
    assert arm.find_sites("tip") == ([0], ["tip"])
    assert arm.find_bodies((".*er", "base"), True) == ([2, 3, 1], ["upper", "lower", "base"])
    assert arm.find_bodies("lower", subset=("lower",)) == ([0], ["lower"])
    assert arm.all_joint_names == ("shoulder", "elbow")
    assert ball_cfg().build().all_joint_names == ("floating_base_joint",)
    assert arm.find_joints_by_actuator_names("elbow") == ([1], ["elbow"])
    with pytest.raises(ValueError, match=r"Cannot select by joint name.*'wrist' matches none"):
        arm.find_joints("wrist")


def test_indexing_agrees_with_the_compiled_model():
    """Find global ids and addresses behind another entity's elements."""
    scene, sim = build(ball=ball_cfg(), arm=arm_cfg())
    indexing, model = scene["arm"].indexing, sim.mj_model
    for kind, ids in (("body", indexing.body_ids), ("site", indexing.site_ids)):
        names = [f"arm/{name}" for name in scene["arm"].names(kind)]
        assert ids.tolist() == [getattr(model, kind)(name).id for name in names]
    assert indexing.joint_q_adr.tolist() == [7, 8]
    assert indexing.joint_v_adr.tolist() == [6, 7]
    assert scene["ball"].indexing.free_joint_q_adr.tolist() == list(range(7))


def test_default_state_comes_from_patterns_or_keyframe():
    """Read joint defaults from a table or, for None, from the first keyframe."""
    table = EntityCfg.InitialStateCfg(joint_pos={"elbow": 0.75})
    keyframe = EntityCfg.InitialStateCfg(joint_pos=None)
    scene, _ = build(a=arm_cfg(init_state=table), b=arm_cfg(init_state=keyframe))
    assert scene["a"].data.default_joint_pos.tolist() == [[0.0, 0.75]] * 3
    assert scene["b"].data.default_joint_pos.tolist() == [[0.25, -0.5]] * 3
    with pytest.raises(ValueError, match="requires the model to have a keyframe"):
        build(ball=ball_cfg(init_state=keyframe))


def test_limits_are_infinite_where_unlimited_and_follow_the_model():
    """Shrink limited joints around their midpoint; read changed ranges at once."""
    scene, sim = build(arm=arm_cfg())
    data = scene["arm"].data
    assert data.joint_pos_limits[0].tolist() == [[-1.0, 1.0], [-torch.inf, torch.inf]]
    assert data.soft_joint_pos_limits[0, 0].tolist() == [-0.5, 0.5]
    sim.model.jnt_range[1, 0] = torch.tensor([-2.0, 2.0])
    assert data.soft_joint_pos_limits[:, 0].tolist() == [[-0.5, 0.5], [-1.0, 1.0], [-0.5, 0.5]]


def test_writers_touch_only_the_worlds_and_joints_named():
    """Write joint state into the outer product of worlds and joints."""
    scene, sim = build(ball=ball_cfg(), arm=arm_cfg())
    arm = scene["arm"]
    ids = torch.tensor([0, 2])
    arm.write_joint_state_to_sim(torch.ones(2, 1), 2 * torch.ones(2, 1), [1], ids)
    assert arm.data.joint_pos.tolist() == [[0, 1], [0, 0], [0, 1]]
    assert arm.data.joint_vel.tolist() == [[0, 2], [0, 0], [0, 2]]
    assert sim.data.qpos[:, :7].tolist() == [[0, 0, 0, 1, 0, 0, 0]] * 3


def test_root_velocity_is_given_in_the_world_frame():
    """Rotate the angular part into the body's frame, as MuJoCo stores it."""
    scene, sim = build(ball=ball_cfg())
    half = 0.5**0.5
    pose = torch.tensor([[1.0, 2.0, 3.0, half, 0.0, 0.0, half]]).repeat(3, 1)
    ball = scene["ball"]
    ball.write_root_link_pose_to_sim(pose)
    velocity = torch.tensor([[1.0, 0.0, 0.0, 1.0, 0.0, 0.0]]).repeat(3, 1)
    ball.write_root_link_velocity_to_sim(velocity)
    sim.forward()
    assert torch.allclose(ball.data.root_link_pos_w[0], torch.tensor([1.0, 2.0, 3.0]))
    assert torch.allclose(sim.data.cvel[0, 1, :3], torch.tensor([1.0, 0.0, 0.0]), atol=1e-6)
    assert torch.allclose(sim.data.qvel[0, 3:], torch.tensor([0.0, -1.0, 0.0]), atol=1e-6)
    with pytest.raises(ValueError, match="Cannot write the root pose of a fixed base"):
        build(arm=arm_cfg())[0]["arm"].write_root_link_pose_to_sim(pose)


def test_motors_apply_effort_targets_within_their_limit():
    """Turn effort targets into joint torques and saturate them."""
    articulation = EntityArticulationInfoCfg(
        actuators=(
            BuiltinMotorActuatorCfg(
                target_names_expr=("elbow",),
                effort_limit=5.0,
                gear=2.0,
                armature=0.5,
                viscous_damping=0.25,
                frictionloss=0.125,
            ),
        )
    )
    scene, sim = build(arm=arm_cfg(articulation=articulation))
    arm = scene["arm"]
    assert sim.mj_model.dof_armature.tolist() == [0.0, 0.5]
    assert sim.mj_model.dof_damping.tolist() == [0.0, 0.25]
    assert sim.mj_model.dof_frictionloss.tolist() == [0.0, 0.125]
    arm.set_joint_effort_target(torch.tensor([[3.0], [50.0], [-50.0]]), [1])
    scene.write_data_to_sim()
    sim.forward()
    assert sim.data.qfrc_actuator[:, 1].tolist() == [6.0, 10.0, -10.0]
    arm.reset(torch.tensor([0]))
    assert arm.data.joint_effort_target[:, 1].tolist() == [0.0, 50.0, -50.0]


def test_mistakes_are_named():
    """Say what is wrong with an entity, and in which."""
    empty = EntityCfg(spec_fn=mujoco.MjSpec)
    with pytest.raises(ValueError, match="Entity 'thing': An entity needs at least one body"):
        build(thing=empty)
    two = BALL.replace(
        "</worldbody>", '<body name="b"><freejoint/><geom size=".1"/></body></worldbody>'
    )
    with pytest.raises(ValueError, match="2 freejoints"):
        build(two=EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(two)))
    loose = BALL.replace("<freejoint/>", '<geom size=".1"/><body name="free"><freejoint/>')
    loose = loose.replace("</body>", "</body></body>")
    with pytest.raises(ValueError, match="freejoint"):
        build(loose=EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(loose)))
    short = ARM.replace('qpos="0.25 -0.5"', 'ctrl=""')
    state = EntityCfg.InitialStateCfg(joint_pos=None)
    with pytest.raises(ValueError, match="keyframe has 0 joint positions, but the entity has 2"):
        build(short=EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(short), init_state=state))
    bad = EntityArticulationInfoCfg(
        actuators=(BuiltinMotorActuatorCfg(target_names_expr=("wrist",), effort_limit=1.0),)
    )
    with pytest.raises(ValueError, match="Entity 'arm': .*Cannot select by joint name"):
        build(arm=arm_cfg(articulation=bad))
    with pytest.raises(ValueError, match="effort_limit must be positive"):
        BuiltinMotorActuatorCfg(target_names_expr=(".*",), effort_limit=-1.0)


@pytest.mark.parametrize("factor", [0.0, -0.5, 1.5])
def test_soft_limits_lie_within_the_limits(factor):
    """Refuse a share of the range that is none."""
    with pytest.raises(ValueError, match=rf"must be in \(0, 1\], got {factor}"):
        EntityArticulationInfoCfg(soft_joint_pos_limit_factor=factor)


def test_state_can_be_saved_and_restored():
    """Restore targets."""
    scene, _ = build(arm=arm_cfg())
    scene["arm"].set_joint_effort_target(torch.rand(3, 2))
    saved = scene.state_dict()
    before = scene["arm"].data.joint_effort_target.clone()
    scene.reset()
    scene.load_state_dict(saved)
    assert torch.equal(scene["arm"].data.joint_effort_target, before)


def test_wrong_configurations_are_refused_in_one_sentence():
    """Name a state of the wrong length, what is no function, and a pattern that is no tuple."""
    for state, message in (
        ({"pos": (0, 0)}, "pos must have 3"),
        ({"rot": (0,) * 4}, "not be zero"),
        ({"pos": (0, 0, float("nan"))}, r"pos must be finite numbers, got \(0, 0, nan\)"),
        ({"lin_vel": "fast"}, "lin_vel must have 3 numbers, got fast"),
        ({"lin_vel": "xyz"}, "lin_vel must be finite numbers, got xyz"),
        ({"joint_pos": {".*": float("nan")}}, r"joint_pos\['\.\*'\] must be finite .*, got nan"),
        ({"joint_vel": {"a.*": "fast"}}, r"joint_vel\['a\.\*'\] must be finite .*, got fast"),
        ({"ball_joint_quat": {".*": (1, 0)}}, r"ball_joint_quat\['\.\*'\] must have 4 numbers"),
        ({"ball_joint_quat": {".*": (0,) * 4}}, r"ball_joint_quat\['\.\*'\] must not be zero"),
    ):
        with pytest.raises(ValueError, match=message):
            Entity(ball_cfg(init_state=EntityCfg.InitialStateCfg(**state)))
    with pytest.raises(TypeError, match="spec_fn must be a function"):
        EntityCfg(spec_fn=mujoco.MjSpec())
    with pytest.raises(ValueError, match=r"write \('elbow',\)"):
        BuiltinMotorActuatorCfg(target_names_expr="elbow", effort_limit=1.0)
    cfg = BuiltinMotorActuatorCfg(
        target_names_expr=(".*",), effort_limit=1.0, transmission_type="joint"
    )
    assert Entity(arm_cfg(articulation=EntityArticulationInfoCfg(actuators=(cfg,)))).num_joints == 2


def test_one_spec_may_serve_several_entities():
    """Leave the spec as it is that a function returns again and again."""
    spec = mujoco.MjSpec.from_string(BALL)
    scene, _ = build(a=EntityCfg(spec_fn=lambda: spec), b=EntityCfg(spec_fn=lambda: spec))
    assert scene["a"].body_names == scene["b"].body_names and not spec.joints[0].name


def test_a_restored_entity_still_clears_its_wrench():
    """Remember across saving that a wrench is applied."""
    scene, sim = build(ball=ball_cfg())
    scene["ball"].write_external_wrench_to_sim(torch.ones(3, 1, 3), torch.zeros(3, 1, 3))
    other, other_sim = build(ball=ball_cfg())
    other.load_state_dict(scene.state_dict())
    other_sim.set_state(sim.get_state())
    other.reset([0])
    assert other_sim.data.xfrc_applied[:, 1, 0].tolist() == [0.0, 1.0, 1.0]


def test_an_entity_says_that_it_is_in_no_simulation_yet():
    """Tell what to call where data and indices are asked for too early."""
    arm = arm_cfg().build()
    for name in ("data", "indexing"):
        with pytest.raises(AttributeError, match=rf"{name}. before .*scene\.initialize\(sim"):
            getattr(arm, name)
    with pytest.raises(AttributeError, match="'Entity' object has no attribute 'colour'"):
        _ = arm.colour


def actuated(*actuators, xml: str = "") -> EntityCfg:
    """Configure the arm with other actuators, and with some of the model's own."""
    model = ARM.replace("<keyframe>", f"<actuator>{xml}</actuator><keyframe>")
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(model),
        articulation=EntityArticulationInfoCfg(actuators=actuators),
    )


def test_a_target_with_two_actuators_is_named():
    """Name both configurations, or the model, where MuJoCo would only repeat a name."""
    motor = BuiltinMotorActuatorCfg(target_names_expr=(".*",), effort_limit=5.0)
    servo = BuiltinPositionActuatorCfg(target_names_expr=("elb.*",), stiffness=1.0, damping=0.1)
    message = r"BuiltinPosition.* drives \['elbow'\], which another .*\(BuiltinMotorActuatorCfg\)"
    with pytest.raises(ValueError, match=message):
        actuated(motor, servo).build()
    with pytest.raises(ValueError, match=r"or the model itself .* with XmlActuatorCfg"):
        actuated(servo, xml="<motor name='elbow' joint='elbow'/>").build()


def test_actuators_that_are_no_tuple_of_configs_are_refused():
    """Say how a tuple is written, and that gains are numbers."""
    motor = BuiltinMotorActuatorCfg(target_names_expr=(".*",), effort_limit=5.0)
    with pytest.raises(TypeError, match=r"actuators must be a tuple .*: write \(value,\), with a"):
        EntityArticulationInfoCfg(actuators=motor)
    with pytest.raises(TypeError, match=r"actuators\[1\] must be of type ActuatorCfg, got str"):
        EntityArticulationInfoCfg(actuators=(motor, "elbow"))
    with pytest.raises(ValueError, match=r"Cfg\.stiffness must be one value .* got a dict: make"):
        BuiltinPositionActuatorCfg(target_names_expr=(".*",), stiffness={".*": 1.0}, damping=0.1)


def test_ball_joints_are_hinted_at_where_they_were_meant():
    """Mention them only if a pattern matches one."""
    text = ARM.replace(
        '<geom name="hand"',
        '<body name="w"><joint name="wrist" type="ball"/><geom size=".1"/></body><geom name="hand"',
    ).replace('qpos="0.25 -0.5"', 'qpos="0.25 -0.5 1 0 0 0"')
    arm = EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_string(text)).build()
    with pytest.raises(ValueError, match="see find_ball_joints"):
        arm.find_joints("wri.*")
    for keys in ("knee", ("elbow", "el.*"), "(elbow"):
        with pytest.raises(ValueError, match="Cannot select by joint") as caught:
            arm.find_joints(keys)
        assert "ball" not in str(caught.value).lower()


@pytest.mark.parametrize(("inputs", "ctrl"), [(1, [0.25]), (3, [0.25, 0.0]), (7, [0.25, 0.0, 0.0])])
def test_actuators_of_several_inputs_hold_the_initial_position(inputs, ctrl):
    """Fill the initial keyframe's controls, of which a PID controller may have up to three."""

    def spec() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_string(ARM)
        pid = spec.add_actuator(name="pid", target="shoulder", trntype=mujoco.mjtTrn.mjTRN_JOINT)
        pid.set_to_pid(kp=10, kv=1, ki=0.1, imax=1.0, slewmax=1.0, ctrlspec=inputs)
        spec.add_actuator(name="motor", target="elbow", trntype=mujoco.mjtTrn.mjTRN_JOINT)
        return spec

    init = EntityCfg.InitialStateCfg(joint_pos={"shoulder": 0.25})
    scene, sim = build(arm=EntityCfg(spec_fn=spec, init_state=init))
    assert sim.mj_model.key("init_state").ctrl.tolist() == [*ctrl, 0.0]
    assert scene["arm"].num_actuators == 2


@pytest.mark.parametrize("gear", [2.0, -0.5])
def test_position_actuators_hold_the_initial_position_behind_a_gear(gear):
    """Fill the initial keyframe with the actuator's length, from which it then does not pull."""

    def spec() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_string(ARM)
        servo = spec.add_actuator(name="servo", target="shoulder", gear=[gear, 0, 0, 0, 0, 0])
        servo.trntype = mujoco.mjtTrn.mjTRN_JOINT
        servo.set_to_position(kp=10.0)
        return spec

    init = EntityCfg.InitialStateCfg(joint_pos={"shoulder": 0.25})
    _, sim = build(arm=EntityCfg(spec_fn=spec, init_state=init))
    data = mujoco.MjData(sim.mj_model)
    mujoco.mj_resetDataKeyframe(sim.mj_model, data, sim.mj_model.key("init_state").id)
    mujoco.mj_forward(sim.mj_model, data)
    assert data.ctrl.tolist() == [0.25 * gear] and data.actuator_force.tolist() == [0.0]


@pytest.mark.parametrize(
    ("write", "shape", "message"),
    [
        (
            "write_root_state_to_sim",
            (3, 7),
            r"has 13 numbers per world, got values of shape \(3, 7\)",
        ),
        ("write_root_link_pose_to_sim", (3, 6), "has 7 numbers per world"),
        ("write_root_link_velocity_to_sim", (3, 5), "has 6 numbers per world"),
        ("write_root_link_velocity_b_to_sim", (3, 5), "has 6 numbers per world"),
        ("write_root_com_velocity_to_sim", (3, 7), "has 6 numbers per world"),
        (
            "write_root_link_pose_to_sim",
            (2, 7),
            r"\(3, 7\) were expected, got \(2, 7\): give one row",
        ),
    ],
)
def test_wrong_shapes_are_named(write, shape, message):
    """Say which shape a writer takes and which it got."""
    scene, _ = build(ball=ball_cfg())
    with pytest.raises(ValueError, match=message):
        getattr(scene["ball"], write)(torch.zeros(shape))


def test_wrong_shapes_of_elements_are_named():
    """Count worlds and elements named, masks included."""
    arm = build(arm=arm_cfg())[0]["arm"]
    with pytest.raises(ValueError, match=r"shape \(3, 2\) were expected, got \(3, 5\)"):
        arm.write_joint_position_to_sim(torch.zeros(3, 5))
    with pytest.raises(ValueError, match=r"shape \(2, 1\) were expected, got \(3, 1\)"):
        mask = torch.tensor([True, False, True])
        arm.set_joint_effort_target(torch.zeros(3, 1), joint_ids=[1], env_ids=mask)
    with pytest.raises(ValueError, match="has 7 numbers per world"):
        arm.write_mocap_pose_to_sim(torch.zeros(3, 3))
    with pytest.raises(ValueError, match=r"World id 7 is out of range: there are 3 worlds"):
        arm.write_joint_position_to_sim(torch.zeros(1, 2), env_ids=[7])


def test_parts_of_parts_keep_their_names_apart():
    """Tell two elbows apart that came with two arms attached to one body."""

    def spec() -> mujoco.MjSpec:
        spec = mujoco.MjSpec.from_string(BALL)
        for side in ("left", "right"):
            part = mujoco.MjSpec.from_string(ARM)
            part.delete(part.keys[0])
            spec.attach(part, prefix=f"{side}/", frame=spec.body("ball").add_frame())
        return spec

    scene, sim = build(arms=EntityCfg(spec_fn=spec), ball=ball_cfg())
    arms = scene["arms"]
    names = ("left/shoulder", "left/elbow", "right/shoulder", "right/elbow")
    assert arms.joint_names == names
    assert arms.find_joints(".*/elbow") == ([1, 3], ["left/elbow", "right/elbow"])
    ids = arms.indexing.joint_ids.tolist()
    assert ids == [sim.mj_model.joint(f"arms/{name}").id for name in names]
    with pytest.raises(ValueError, match=r"ambiguous: 'elbow' .* \['left/elbow', 'right/elbow'\]"):
        arms.find_joints("elbow")


TENDON = """
  <tendon><fixed name="elbow_cable"><joint joint="elbow" coef="1"/></fixed></tendon>
</mujoco>
"""


def test_targets_of_another_kind_are_hinted_at():
    """Name what else a pattern matches, as an error if nothing of the kind asked for."""

    def cfg(*patterns: str) -> EntityCfg:
        motor = BuiltinMotorActuatorCfg(target_names_expr=patterns, effort_limit=1.0)
        return EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_string(ARM.replace("</mujoco>", TENDON)),
            articulation=EntityArticulationInfoCfg(actuators=(motor,)),
        )

    with pytest.raises(ValueError, match=r"Matches were found in tendon: elbow_cable: set trans"):
        cfg("elbow_.*").build()
    with pytest.raises(ValueError, match=r"'\(elbow' is not a regular expression"):
        cfg("(elbow").build()
    with pytest.warns(UserWarning, match="also match tendon: elbow_cable"):
        assert cfg("elbow.*").build().actuator_names == ("elbow",)


def test_a_whole_name_is_exact_enough(recwarn):
    """Warn of no other element of the same name where the pattern is a target's whole name."""
    xml = ARM.replace("</mujoco>", TENDON.replace("elbow_cable", "elbow"))

    def build(pattern: str) -> None:
        motor = BuiltinMotorActuatorCfg(target_names_expr=(pattern,), effort_limit=1.0)
        EntityCfg(
            spec_fn=lambda: mujoco.MjSpec.from_string(xml),
            articulation=EntityArticulationInfoCfg(actuators=(motor,)),
        ).build()

    build("^elbow$")
    assert not recwarn
    with pytest.warns(UserWarning, match="also match tendon: elbow"):
        build("elb.*")


def test_spec_editors_run_in_their_order():
    """Give geoms a material that shows a texture of the same configuration, then collisions."""
    cfg = ball_cfg(
        collisions=(CollisionCfg(geom_names_expr=("ball",), condim=1),),
        geoms=(GeomCfg(geom_names_expr=("ball",), condim=4, margin=0.01),),
        materials=(MaterialCfg(name="dots", texture="dots", geom_names_expr=("ball",)),),
        textures=(TextureCfg(name="dots", type="2d", builtin="flat", width=4, height=4),),
        cameras=(CameraCfg(name="eye", body="ball"),),
        lights=(LightCfg(name="lamp", body="ball"),),
    )
    with pytest.warns(UserWarning, match="condim"):
        ball = cfg.build()
    model = ball.compile()
    assert (model.geom("ball").condim, model.geom("ball").margin) == (1, 0.01)
    assert model.geom("ball").matid == model.mat("dots").id
    assert model.mat("dots").texid.max() == model.tex("dots").id
    names = (ball.camera_names, ball.light_names, ball.material_names, ball.texture_names)
    assert names == (("eye",), ("lamp",), ("dots",), ("dots",))


def test_a_kind_of_ones_own_is_built_and_served():
    """Let a subclass decide what is built and take part in the life of the scene."""

    class Ball(Entity):
        calls: list[str] = []

        def initialize(self, *args) -> None:
            super().initialize(*args)
            self.calls.append("initialize")

        def update(self, dt: float) -> None:
            super().update(dt)
            self.calls.append(f"update {dt}")

    class BallCfg(EntityCfg):
        def build(self) -> Ball:
            return Ball(self)

    scene, _ = build(ball=BallCfg(spec_fn=lambda: mujoco.MjSpec.from_string(BALL)))
    scene.update(0.5)
    assert scene["ball"].calls == ["initialize", "update 0.5"]


def test_default_limits_stay_those_of_the_model():
    """Keep the compiled limits where the limits themselves follow a changed range."""
    scene, sim = build(arm=arm_cfg())
    sim.model.jnt_range[1, 0] = torch.tensor([-2.0, 2.0])
    data = scene["arm"].data
    assert data.joint_pos_limits[1, 0].tolist() == [-2.0, 2.0]
    assert data.default_joint_pos_limits[:, 0].tolist() == [[-1.0, 1.0]] * 3
