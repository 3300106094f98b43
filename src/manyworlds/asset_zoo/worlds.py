"""Small worlds to play with, built from primitives; nothing here needs torch."""

from __future__ import annotations

import math
from collections.abc import Mapping

import mujoco
import numpy as np

from manyworlds.asset_zoo import arm_links, humanoid_links, quadruped_links

HOME = "init_state"
"""Keyframe with the initial state of a world."""

_GEOM = mujoco.mjtGeom
_COLORS = (
    (0.85, 0.33, 0.24, 1.0),
    (0.95, 0.69, 0.25, 1.0),
    (0.36, 0.60, 0.42, 1.0),
    (0.25, 0.47, 0.70, 1.0),
    (0.55, 0.40, 0.65, 1.0),
)
_WOOD = (0.62, 0.47, 0.33, 1.0)
_STONE = (0.55, 0.56, 0.58, 1.0)
_STEEL = (0.35, 0.38, 0.42, 1.0)


def arm_and_blocks() -> mujoco.MjSpec:
    """Build an arm on a table, and blocks within its reach."""
    spec = _ground("arm_and_blocks")
    table = spec.worldbody.add_body(name="table", pos=(0.25, 0.0, 0.2))
    table.add_geom(name="table", type=_GEOM.mjGEOM_BOX, size=(0.45, 0.5, 0.2), rgba=_WOOD)
    _attach(spec, arm_links.get_spec(), "arm/", (0.0, 0.0, 0.4))
    spec.add_exclude(bodyname1="table", bodyname2="arm/arm")
    for i in range(6):
        column, row = divmod(i, 3)
        place = (0.38, 0.22 - 0.36 * column, 0.425 + 0.05 * row)
        _box(spec, f"block_{i}", place, (0.025, 0.025, 0.025), 0.06, _COLORS[i % len(_COLORS)])
    gains = {f"joint{i}": kp for i, kp in enumerate((60, 80, 60, 20, 10, 6), 1)}
    _position_control(spec, "arm/", gains | {"left_finger": 400})
    stance = {"joint2": 1.047, "joint3": 1.047, "left_finger": 0.0375, "right_finger": -0.0375}
    return _start(spec, {f"arm/{joint}": angle for joint, angle in stance.items()})


def quadruped_on_hills() -> mujoco.MjSpec:
    """Build a quadruped that stands on a height field."""
    spec = _ground("quadruped_on_hills")
    x, y = np.meshgrid(np.linspace(-4.0, 4.0, 129), np.linspace(-4.0, 4.0, 129))
    hills = np.sin(1.1 * x) * np.cos(0.9 * y) + 0.4 * np.sin(2.3 * x + 1.0) * np.sin(1.9 * y)
    hills *= 1.0 - np.exp(-(x**2 + y**2) / 0.8)  # it starts on even ground
    share = (hills - hills.min()) / np.ptp(hills)
    height = 0.45
    spec.add_hfield(
        name="hills", size=(4.0, 4.0, height, 0.2), nrow=129, ncol=129, userdata=share.ravel()
    )
    middle = height * float(share[64, 64])
    spec.geom("floor").pos[2] = -middle  # beyond the hills
    spec.worldbody.add_geom(
        name="hills",
        type=_GEOM.mjGEOM_HFIELD,
        hfieldname="hills",
        pos=(0.0, 0.0, -middle),
        rgba=(0.48, 0.58, 0.40, 1.0),
    )
    return _start(spec, _add_quadruped(spec))


def quadruped_to_drive() -> mujoco.MjSpec:
    """Build a quadruped on a plane, and crates and a ball that it can push."""
    spec = _ground("quadruped_to_drive")
    angles = _add_quadruped(spec)
    for i, (x, y) in enumerate(((1.6, 0.5), (1.9, -0.4), (2.6, 0.2))):
        _box(spec, f"crate_{i}", (x, y, 0.1), (0.1, 0.1, 0.1), 0.6, _COLORS[i])
    _ball(spec, "ball", (1.4, -1.0, 0.13), 0.13, 0.3, _COLORS[3])
    return _start(spec, angles)


def humanoid_and_launcher() -> mujoco.MjSpec:
    """Build a humanoid, and things to throw at it."""
    spec = _ground("humanoid_and_launcher")
    _attach(spec, humanoid_links.get_spec(), "humanoid/", (0.0, 0.0, 0.765))
    stance = {"waist_yaw_joint": 0.0, "waist_roll_joint": 0.0, "waist_pitch_joint": 0.0}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        bent = {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3, "elbow": 0.6}
        bent |= {"shoulder_pitch": 0.2, "shoulder_roll": 0.2 * sign, "hip_roll": 0.0}
        straight = ("hip_yaw", "ankle_roll", "shoulder_yaw")
        bent |= dict.fromkeys((*straight, "wrist_roll", "wrist_pitch", "wrist_yaw"), 0.0)
        stance |= {f"{side}_{joint}_joint": angle for joint, angle in bent.items()}
    gains = dict.fromkeys(stance, 250.0)
    gains |= {joint: 40.0 for joint in stance if "wrist" in joint}
    _position_control(spec, "humanoid/", gains)
    _ball(spec, "ball", (2.5, 0.6, 0.12), 0.12, 0.6, _COLORS[0])
    _box(spec, "crate", (2.5, -0.6, 0.15), (0.15, 0.15, 0.15), 1.5, _WOOD)
    return _start(spec, {f"humanoid/{joint}": angle for joint, angle in stance.items()})


def bowl_and_ball() -> mujoco.MjSpec:
    """Build a bowl of flat pieces, and balls that roll in it."""
    spec = _ground("bowl_and_ball")
    bowl = spec.worldbody.add_body(name="bowl", pos=(0.0, 0.0, 0.02))
    bowl.add_geom(name="bottom", type=_GEOM.mjGEOM_CYLINDER, size=(0.14, 0.015, 0), rgba=_COLORS[3])
    radius = 0.5  # of the sphere whose lower part is the bowl
    pieces = 20
    for ring, polar in enumerate(np.radians((24.0, 40.0, 56.0, 72.0))):
        for i in range(pieces):
            around = 2.0 * math.pi * i / pieces
            out = np.array([math.cos(around), math.sin(around)])
            place = [*(radius * math.sin(polar) * out), radius * (1.0 - math.cos(polar)) - 0.02]
            width = radius * math.sin(polar + 0.14) * math.tan(math.pi / pieces) + 0.004
            bowl.add_geom(
                name=f"piece_{ring}_{i}",
                type=_GEOM.mjGEOM_BOX,
                size=(0.075, width, 0.012),
                pos=place,
                quat=_turned(around, -polar),
                rgba=_COLORS[3],
            )
    for i, (x, y) in enumerate(((0.36, 0.0), (-0.2, 0.28), (-0.1, -0.3))):
        place = (x, y, 0.75 + 0.15 * i)
        _ball(spec, f"ball_{i}", place, 0.05 + 0.012 * i, 0.1, _COLORS[i], rolling=0.002)
    return _start(spec, {})


def cloth_on_a_pole() -> mujoco.MjSpec:
    """Build a cloth that hangs from a horizontal pole, and a ball to throw at it."""
    cloth = mujoco.MjSpec.from_string(
        '<mujoco><worldbody><flexcomp name="cloth" type="grid" dim="2" count="10 10 1"'
        ' spacing=".08 .08 .08" pos=".36 0 1.2" mass=".3" radius=".01"'
        ' rgba=".85 .33 .24 1"><edge equality="true" damping=".05"/>'
        '<contact condim="3" selfcollide="none"/><pin gridrange="0 0 0 9"/>'
        "</flexcomp></worldbody></mujoco>"
    )
    spec = _ground("cloth_on_a_pole", cloth)
    pole = spec.worldbody.add_body(name="pole")
    ends = ((0.0, -0.5), (0.0, 0.5))
    lines = [(*low, 0.0, *low, 1.2) for low in ends] + [(0.0, -0.5, 1.2, 0.0, 0.5, 1.2)]
    for line in lines:
        pole.add_geom(
            type=_GEOM.mjGEOM_CAPSULE,
            fromto=line,
            size=(0.025, 0, 0),
            contype=0,
            conaffinity=0,
            rgba=_WOOD,
        )
    _ball(spec, "ball", (1.2, 0.0, 0.1), 0.1, 0.2, _COLORS[3])
    spec.option.timestep = 0.004
    spec.memory = 64 * 2**20  # contacts of a cloth need much
    return spec


def swinging_bridge() -> mujoco.MjSpec:
    """Build a bridge of planks between two towers, and crates on it."""
    spec = _ground("swinging_bridge")
    planks = 14
    length = 0.2
    height = 1.2
    slack = 0.2
    half = 0.5 * planks * length
    for name, x in (("west", -half - 0.27), ("east", half - slack + 0.27)):
        tower = spec.worldbody.add_body(name=name, pos=(x, 0.0, 0.5 * height))
        tower.add_geom(
            type=_GEOM.mjGEOM_BOX, size=(0.25, 0.4, 0.5 * height), rgba=_STONE, friction=(1, 0, 0)
        )
    parent = spec.worldbody
    place = (-half, 0.0, height)
    for i in range(planks):
        parent = parent.add_body(name=f"plank_{i}", pos=place)
        # The two axes let it sag and swing.
        parent.add_joint(name=f"sag_{i}", axis=(0, 1, 0), damping=0.15)
        parent.add_joint(name=f"swing_{i}", axis=(1, 0, 0), damping=0.3, stiffness=8.0)
        parent.add_geom(
            name=f"plank_{i}",
            type=_GEOM.mjGEOM_BOX,
            size=(0.46 * length, 0.25, 0.015),
            pos=(0.5 * length, 0.0, 0.0),
            mass=0.8,
            rgba=_WOOD,
            friction=(1, 0.005, 0.0001),
        )
        for edge in (-0.25, 0.25):
            parent.add_geom(
                type=_GEOM.mjGEOM_CAPSULE,
                fromto=(0.0, edge, 0.0, length, edge, 0.0),
                size=(0.012, 0, 0),
                mass=0.02,
                contype=0,
                conaffinity=0,
                rgba=_STEEL,
            )
        place = (length, 0.0, 0.0)
    for name, side in (("south", -0.25), ("north", 0.25)):
        parent.add_site(name=f"{name}_end", pos=(length, side, 0.0))
        spec.body("east").add_site(name=f"{name}_hook", pos=(-0.27, side, 0.5 * height))
        hold = spec.add_equality(
            name=name,
            type=mujoco.mjtEq.mjEQ_CONNECT,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            name1=f"{name}_end",
            name2=f"{name}_hook",
        )
        hold.solref[:] = [0.01, 1.0]
    for i in range(3):
        place = (0.35 * (i - 1) - 0.1, 0.05, height + 0.2)
        _box(spec, f"crate_{i}", place, (0.09, 0.09, 0.09), 1.5, _COLORS[i])
    # It hangs in an arc, which is longer than the gap.
    low = 0.0
    high = 1.0
    slopes = np.linspace(1.0, -1.0, planks)
    while high - low > 1e-9:
        steepest = 0.5 * (low + high)
        wide = length * np.cos(steepest * slopes).sum() > 2.0 * half - slack
        if wide:
            low = steepest
        else:
            high = steepest
    turns = np.diff(low * slopes, prepend=0.0)
    return _start(spec, {f"sag_{i}": float(turn) for i, turn in enumerate(turns)})


def _ground(name: str, spec: mujoco.MjSpec | None = None) -> mujoco.MjSpec:
    """Return a spec with light, sky, and a floor."""
    if spec is None:
        spec = mujoco.MjSpec()
    spec.modelname = name
    spec.compiler.degree = False
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.visual.headlight.ambient[:] = 0.35
    spec.visual.headlight.diffuse[:] = 0.45
    spec.visual.global_.offwidth = 1280
    spec.visual.global_.offheight = 960
    checker = mujoco.mjtBuiltin.mjBUILTIN_CHECKER
    sky = mujoco.mjtBuiltin.mjBUILTIN_GRADIENT
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=sky,
        rgb1=(0.78, 0.86, 0.93),
        rgb2=(0.97, 0.97, 0.97),
        width=128,
        height=768,
    )
    spec.worldbody.add_light(
        name="sun",
        pos=(1.0, -1.5, 4.0),
        dir=(-0.25, 0.35, -1.0),
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        diffuse=(0.55, 0.55, 0.55),
    )
    spec.add_texture(
        name="tiles",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=checker,
        rgb1=(0.83, 0.84, 0.86),
        rgb2=(0.76, 0.78, 0.80),
        width=128,
        height=128,
    )
    material = spec.add_material(name="tiles", texrepeat=(10, 10))
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    spec.worldbody.add_geom(
        name="floor", type=_GEOM.mjGEOM_PLANE, size=(10, 10, 0.1), material="tiles"
    )
    return spec


def _add_quadruped(spec: mujoco.MjSpec) -> dict[str, float]:
    """Add a quadruped with position control; return the joint angles of its stance [rad]."""
    _attach(spec, quadruped_links.get_spec(), "quadruped/", (0.0, 0.0, 0.31))
    legs = ("FL", "FR", "RL", "RR")
    parts = {"hip": 0.1, "thigh": 0.9, "calf": -1.8}
    stance = {f"{leg}_{part}_joint": angle for leg in legs for part, angle in parts.items()}
    stance |= {"FR_hip_joint": -0.1, "RR_hip_joint": -0.1}
    _position_control(spec, "quadruped/", dict.fromkeys(stance, 60.0))
    return {f"quadruped/{joint}": angle for joint, angle in stance.items()}


def _attach(
    spec: mujoco.MjSpec, robot: mujoco.MjSpec, prefix: str, place: tuple[float, float, float]
) -> None:
    spec.attach(robot, prefix=prefix, frame=spec.worldbody.add_frame(pos=place))


def _box(
    spec: mujoco.MjSpec,
    name: str,
    place: tuple[float, float, float],
    half: tuple[float, ...],
    mass: float,
    rgba: tuple[float, float, float, float],
) -> None:
    body = spec.worldbody.add_body(name=name, pos=place)
    body.add_freejoint(name=name)
    body.add_geom(name=name, type=_GEOM.mjGEOM_BOX, size=half, mass=mass, rgba=rgba, condim=4)


def _ball(
    spec: mujoco.MjSpec,
    name: str,
    place: tuple[float, float, float],
    radius: float,
    mass: float,
    rgba: tuple[float, float, float, float],
    rolling: float = 0.02,
) -> None:
    """Add a ball, which rolling friction [m] stops before it is out of sight."""
    body = spec.worldbody.add_body(name=name, pos=place)
    body.add_freejoint(name=name)
    body.add_geom(
        name=name,
        type=_GEOM.mjGEOM_SPHERE,
        size=(radius, 0, 0),
        mass=mass,
        condim=6,
        friction=(0.8, 0.002, rolling),
        rgba=rgba,
    )


def _position_control(spec: mujoco.MjSpec, prefix: str, gains: Mapping[str, float]) -> None:
    """Add an actuator of the joint's name for each joint, critically damped."""
    for joint, kp in gains.items():
        target = spec.joint(f"{prefix}{joint}")
        target.armature = max(float(target.armature), 0.005)
        actuator = spec.add_actuator(
            name=f"{prefix}{joint}",
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            target=target.name,
            ctrllimited=True,
            ctrlrange=target.range.tolist(),
        )
        actuator.set_to_position(kp=kp, dampratio=1.0)


def _start(spec: mujoco.MjSpec, angles: Mapping[str, float]) -> mujoco.MjSpec:
    """Add the initial state: joint positions by name, and controls that hold them."""
    model = spec.compile()
    data = mujoco.MjData(model)
    for joint, angle in angles.items():
        data.joint(joint).qpos[0] = angle
    for i in range(model.nu):
        joint = model.joint(int(model.actuator(i).trnid[0]))
        data.ctrl[i] = data.qpos[joint.qposadr[0]]
    spec.add_key(name=HOME, qpos=data.qpos.tolist(), ctrl=data.ctrl.tolist())
    return spec


def _turned(yaw: float, pitch: float) -> list[float]:
    """Return the orientation (wxyz) after a turn about z, then about the turned y axis."""
    half_yaw = 0.5 * yaw
    half_pitch = 0.5 * pitch
    about_z = np.array([math.cos(half_yaw), 0.0, 0.0, math.sin(half_yaw)])
    about_y = np.array([math.cos(half_pitch), 0.0, math.sin(half_pitch), 0.0])
    both = np.zeros(4)
    mujoco.mju_mulQuat(both, about_z, about_y)
    return both.tolist()
