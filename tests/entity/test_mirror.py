"""Mirror images of states, found in compiled models, against steps of MuJoCo C."""

from __future__ import annotations

import copy
import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.asset_zoo.humanoid import get_humanoid_cfg
from manyworlds.asset_zoo.quadruped import get_quadruped_cfg
from manyworlds.entity.mirror import REFLECTION, MirrorTable, mirror_table
from tests.robots import robot_on_floor

ROBOTS = {
    "wings": {},
    "quadruped": {},
    "humanoid": {},
    "unitree_go1/go1.xml": {},
    "unitree_g1/g1.xml": {},
    "gymnasium ant": {},
    # Its thighs have different armature, and only one of its knees has a spring.
    "gymnasium humanoid": {"tolerance": 1.0},
    "gymnasium half_cheetah": {},
    # Hip ranges differ by 10 degrees between left and right.
    "dm_control humanoid": {"tolerance": 0.1},
    "dm_control quadruped": {"body": "torso"},
    # Its root looks along its z axis, and the ranges of its wrists are not symmetric.
    "dm_control humanoid_CMU": {"normal": (1.0, 0.0, 0.0), "tolerance": 1.0},
    "dm_control dog": {"body": "torso"},
}


# Arms with differently oriented frames on both sides, and kinds of joints and actuators that the
# robots above do not have.
WINGS = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="hull" pos="0 0 1" euler="0 0 90">
      <freejoint/>
      <geom type="ellipsoid" size=".3 .1 .05"/>
      <body name="slider">
        <joint name="across" type="slide" axis="0 1 0" range="-.1 .1" damping="1"/>
        <geom size=".05"/>
      </body>
      <body name="wing_a" pos="0 .1 0" euler="-90 0 0">
        <joint name="ball_a" type="ball" damping=".1"/>
        <geom pos=".1 0 .3" size=".04"/>
        <site name="tip_a" pos=".1 0 .3"/>
        <body pos=".1 0 .3">
          <joint name="flap_a" axis="0 1 0" stiffness="2"/>
          <geom pos=".1 0 .3" size=".04"/>
        </body>
      </body>
      <body name="wing_b" pos="0 -.1 0">
        <joint name="ball_b" type="ball" damping=".1"/>
        <geom pos=".1 -.3 0" size=".04"/>
        <site name="tip_b" pos=".1 -.3 0" euler="180 0 0"/>
        <body pos=".1 -.3 0">
          <joint name="flap_b" axis="0 0 -1" stiffness="2"/>
          <geom pos=".1 -.3 0" size=".04"/>
        </body>
      </body>
      <site name="nose" pos=".3 0 0"/>
    </body>
  </worldbody>
  <contact><exclude body1="hull" body2="wing_a"/><exclude body1="hull" body2="wing_b"/></contact>
  <equality><joint joint1="flap_a" joint2="flap_b" polycoef="0 1 0 0 0"/>
    <joint joint1="flap_b" joint2="flap_a" polycoef="0 1 0 0 0"/></equality>
  <tendon>
    <spatial name="rope_a" stiffness="3"><site site="nose"/><site site="tip_a"/></spatial>
    <spatial name="rope_b" stiffness="3"><site site="nose"/><site site="tip_b"/></spatial>
    <fixed name="flaps"><joint joint="flap_a" coef="1"/><joint joint="flap_b" coef="-1"/></fixed>
  </tendon>
  <actuator>
    <position joint="across" kp="20"/>
    <motor name="turn_a" joint="ball_a" gear="1 2 3"/>
    <motor name="turn_b" joint="ball_b" gear="1 -3 -2"/>
    <motor name="thrust_a" site="tip_a" gear="0 -1 0 0 .1 0"/>
    <motor name="thrust_b" site="tip_b" gear="0 0 1 0 0 .1"/>
    <motor name="flap_a" joint="flap_a" gear="-2"/>
    <motor name="flap_b" joint="flap_b" gear="2"/>
    <general name="pull_a" tendon="rope_a" dyntype="filter" dynprm=".1"/>
    <general name="pull_b" tendon="rope_b" dyntype="filter" dynprm=".1"/>
    <motor name="flaps" tendon="flaps"/>
  </actuator>
</mujoco>
"""


def _file(name: str) -> Path:
    package, robot = name.split()
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed")
    folder = {"gymnasium": "envs/mujoco/assets", "dm_control": "suite"}[package]
    return Path(spec.origin).parent / folder / f"{robot}.xml"


def load(name: str) -> mujoco.MjModel:
    """Compile a robot on a floor."""
    if name == "wings":
        return mujoco.MjModel.from_xml_string(WINGS)
    if name in ("quadruped", "humanoid"):
        spec = {"quadruped": get_quadruped_cfg, "humanoid": get_humanoid_cfg}[name]().build().spec
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5.0, 5.0, 0.1])
        return spec.compile()
    return robot_on_floor(name) if "/" in name else mujoco.MjModel.from_xml_path(str(_file(name)))


def reflected(table: MirrorTable) -> mujoco.MjModel:
    """Return a model in which each element has the reflected properties of its mirror image.

    It is the same model for a robot that is exactly symmetric. For another one, a state and its
    mirror image in this model have the same future.
    """
    model, other = table.model, copy.copy(table.model)

    def turn(quat: np.ndarray, frame: np.ndarray, source: np.ndarray) -> None:
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, source)
        # Shapes and inertias are symmetric in their own frames.
        mujoco.mju_mat2Quat(quat, (frame.T @ matrix.reshape(3, 3) @ REFLECTION).ravel())

    for own, image in enumerate(table.body_ids):
        if image >= 0:
            frame = table.body_frames[own]
            other.body_ipos[image] = frame.T @ model.body_ipos[own]
            if own != table.body:
                parent = table.body_frames[model.body_parentid[own]]
                other.body_pos[image] = parent.T @ model.body_pos[own]
            turn(other.body_iquat[image], frame, model.body_iquat[own])
            other.body_mass[image] = model.body_mass[own]
            other.body_inertia[image] = model.body_inertia[own]
    for own, image in enumerate(table.geom_ids):
        if image >= 0 and model.geom_type[own] != int(mujoco.mjtGeom.mjGEOM_MESH):
            frame = table.body_frames[model.geom_bodyid[own]]
            other.geom_pos[image] = frame.T @ model.geom_pos[own]
            turn(other.geom_quat[image], frame, model.geom_quat[own])
            other.geom_size[image] = model.geom_size[own]
            other.geom_friction[image] = model.geom_friction[own]
    for own, image in enumerate(table.joint_ids):
        if image >= 0:
            frame, sign = table.body_frames[model.jnt_bodyid[own]], table.joint_sign[own]
            other.jnt_pos[image] = frame.T @ model.jnt_pos[own]
            if model.jnt_type[own] == int(mujoco.mjtJoint.mjJNT_HINGE):
                other.jnt_axis[image] = -sign * frame.T @ model.jnt_axis[own]
            bounds = model.jnt_range[own]
            other.jnt_range[image] = bounds if sign > 0 else -bounds[::-1]
            other.jnt_stiffness[image] = model.jnt_stiffness[own]
            dofs = model.jnt_dofadr[[own, image]]
            for field in ("armature", "damping", "frictionloss"):
                values = getattr(model, f"dof_{field}")
                getattr(other, f"dof_{field}")[dofs[1]] = values[dofs[0]]
    mujoco.mj_setConst(other, mujoco.MjData(other))
    return other


def fallen(model: mujoco.MjModel, table: MirrorTable, seed: int) -> mujoco.MjData:
    """Return a moving robot with random controls that touches the floor."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    data.qvel[:] = 0.3 * rng.standard_normal(model.nv)
    velocity = rng.standard_normal(model.nv)
    mujoco.mj_integratePos(model, data.qpos, velocity, 0.2)
    inside = np.isin(model.geom_bodyid, np.flatnonzero(table.body_ids >= 0))
    mujoco.mj_forward(model, data)
    if model.jnt_type[0] == int(mujoco.mjtJoint.mjJNT_FREE):
        lowest = min(data.geom_xpos[g, 2] - model.geom_rbound[g] for g in np.flatnonzero(inside))
        data.qpos[2] -= lowest
        for _ in range(60):  # lower it until it touches
            mujoco.mj_forward(model, data)
            if data.ncon:
                break
            data.qpos[2] -= 0.02
    span = np.where(
        model.actuator_ctrllimited[:, None] != 0, model.actuator_ctrlrange, [[-1.0, 1.0]]
    )
    data.ctrl[:] = rng.uniform(span[:, 0], span[:, 1]) * 0.3
    data.act[:] = 0.1 * rng.standard_normal(model.na)
    return data


def mirrored(table: MirrorTable, data: mujoco.MjData, model: mujoco.MjModel) -> mujoco.MjData:
    """Return the mirror image of a state."""
    image = mujoco.MjData(model)
    image.qpos[:] = table.mirror_qpos(data.qpos)
    image.qvel[:] = table.mirror_qvel(data.qvel)
    image.ctrl[:] = table.mirror_ctrl(data.ctrl)
    image.act[:] = table.mirror_act(data.act)
    return image


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("seed", range(3))
def test_the_next_state_of_a_mirror_image_is_the_mirror_image_of_the_next_state(
    name: str, seed: int
) -> None:
    """Step a state, and its image in the reflected model, and compare velocities."""
    model = load(name)
    table = mirror_table(model, **ROBOTS[name])
    # Other objects stay in place, and the triangles of a height field have no mirror image.
    alien = (table.body_ids[model.geom_bodyid] < 0) & (model.geom_bodyid > 0)
    alien |= model.geom_type == int(mujoco.mjtGeom.mjGEOM_HFIELD)
    model.geom_contype[alien] = model.geom_conaffinity[alien] = 0
    other = reflected(table)
    for each in (model, other):
        # Iterate to the minimum: the order of contacts differs between the images.
        each.opt.iterations, each.opt.tolerance = 200, 1e-14
        each.opt.ls_iterations, each.opt.ls_tolerance = 50, 1e-6
        each.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    data = fallen(model, table, seed)
    image = mirrored(table, data, other)
    mujoco.mj_step(model, data)
    mujoco.mj_step(other, image)
    assert data.ncon == image.ncon

    np.testing.assert_allclose(image.qvel, table.mirror_qvel(data.qvel), rtol=0, atol=1e-10)
    np.testing.assert_allclose(image.qpos, table.mirror_qpos(data.qpos), rtol=0, atol=1e-12)
    np.testing.assert_allclose(image.act, table.mirror_act(data.act), rtol=0, atol=1e-12)


def test_tables_pair_left_with_right_and_know_the_signs() -> None:
    """Pitch joints keep their sign, roll joints change it, and images of images are the same."""
    model = load("quadruped")
    table = mirror_table(model)
    pairs = {model.joint(i).name: (model.joint(j).name, s) for i, j, s in _joints(table)}
    assert pairs["FL_hip_joint"] == ("FR_hip_joint", -1.0)
    assert pairs["RR_calf_joint"] == ("RL_calf_joint", 1.0)
    for ids in (table.body_ids, table.geom_ids, table.actuator_ids, table.site_ids):
        inside = np.flatnonzero(ids >= 0)
        assert len(inside) and (ids[ids[inside]] == inside).all()


def _joints(table: MirrorTable) -> list[tuple[int, int, float]]:
    ids = enumerate(table.joint_ids.tolist())
    return [(i, j, float(table.joint_sign[i])) for i, j in ids if j >= 0]


CHANGES = {
    "mass": (("body_mass", "FL_calf"), 1.2, "the mass of body 'F._calf'.*'F._calf' by 0.0"),
    "range": (("jnt_range", "RL_hip_joint"), 1.1, "the range of body 'R._hip'"),
    "shape": (("geom_size", "FR_foot_collision"), 2.0, "the shape of geom 'F._foot_collision'.* m"),
    "gain": (("actuator_gainprm", "FL_hip_joint"), 0.5, "the gainprm of actuator 'F._hip_joint'"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_asymmetric_robots_raise_with_element_and_amount(change: str) -> None:
    """Change one element of a symmetric robot, and find it in the message."""
    model = load("quadruped")
    (field, name), factor, message = CHANGES[change]
    kind = {"jnt": "joint"}.get(prefix := field.split("_")[0], prefix)
    getattr(model, field)[getattr(model, kind)(name).id] *= factor
    with pytest.raises(ValueError, match=message):
        mirror_table(model)


def test_other_models_raise() -> None:
    """A gripper with one camera, several robots, a tilted mount, a missing exclusion."""
    with pytest.raises(ValueError, match="is not symmetric at its sagittal plane"):
        mirror_table(robot_on_floor("i2rt_yam/yam.xml"))
    with pytest.raises(ValueError, match=r"2 bodies that move .*'torso', 'ball'.*as `body`"):
        mirror_table(load("dm_control quadruped"))
    tilted = load("gymnasium half_cheetah")
    tilted.opt.gravity[:] = 0.0, 5.0, -8.0
    with pytest.raises(ValueError, match="gravity .* mount the robot upright"):
        mirror_table(tilted)
    tilted.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_GRAVITY
    assert mirror_table(tilted)
    lonely = WINGS.replace('<exclude body1="hull" body2="wing_b"/>', "")
    with pytest.raises(ValueError, match=r"'wing_a'\] are excluded, .*'wing_b'\] are not"):
        mirror_table(mujoco.MjModel.from_xml_string(lonely))
    lonely = WINGS.replace('<joint joint1="flap_b" joint2="flap_a" polycoef="0 1 0 0 0"/>', "")
    with pytest.raises(ValueError, match="equality 'eq 0' has no mirror image"):
        mirror_table(mujoco.MjModel.from_xml_string(lonely))
    bent = WINGS.replace('polycoef="0 1 0 0 0"', 'polycoef="0 1 .2 0 0"', 1)
    with pytest.raises(ValueError, match="equality 'eq 0' has no mirror image"):
        mirror_table(mujoco.MjModel.from_xml_string(bent))
    fixed = WINGS.replace('site="tip_a" gear', 'site="tip_a" refsite="nose" gear')
    with pytest.raises(ValueError, match="actuator 'thrust_a' has no known mirror image"):
        mirror_table(mujoco.MjModel.from_xml_string(fixed))
    table = mirror_table(load("unitree_go1/go1.xml"))
    site = table.model.site("imu").id
    with pytest.raises(ValueError, match=r"sites \['imu'\] have no mirror image"):
        table.images("site", np.array([site]))
