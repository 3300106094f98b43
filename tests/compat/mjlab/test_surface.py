"""The public surface of mjlab 1.6.0: arguments by position, defaults, and counts of differences."""

import inspect
import re
from types import SimpleNamespace

import mujoco
import pytest
import torch

from manyworlds.actuator import ActuatorCmd, BuiltinMotorActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, VariantEntityCfg
from manyworlds.entity.variants import VariantMetadata
from manyworlds.envs.mdp import dr
from manyworlds.managers import (
    CurriculumTermCfg,
    EventTermCfg,
    ManagerBase,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RecorderTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.rl import RslRlOnPolicyRunnerCfg
from manyworlds.sensor import (
    BuiltinSensor,
    BuiltinSensorCfg,
    CameraSensorCfg,
    ContactMatch,
    ContactSensorCfg,
    GridPatternCfg,
    ObjRef,
    PinholeCameraPatternCfg,
    RayCastSensorCfg,
    RingPatternCfg,
    TerrainHeightSensorCfg,
)
from manyworlds.sim import MujocoCfg
from manyworlds.spec.config import CameraCfg, CollisionCfg, GeomCfg, LightCfg, MaterialCfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.utils.nan_guard import NanGuardCfg
from tests.compat.mjlab.surface import differences

# Differences by kind: what they concern, the largest number of them, and the reason.
_MADE_HERE = {
    r"data\.EntityData: \(": (22, "made by Entity.initialize, of other parts"),
    r"entity\.EntityIndexing: \(": (16, "made by Entity.initialize; it has more columns"),
    r"BuiltinActuatorGroup: \(": (1, "made by ActuatorGroups"),
    r"BodySignature: \(": (2, "geoms may differ, so they are no part of it"),
    r"VariantMetadata: \(variant_source_specs": (1, "the specs are emptied when merged"),
    r"PinholeCameraPatternCfg: \(_camera_name": (1, "the same argument is camera_name"),
}
EXPECTED: dict[str, dict[str, tuple[int, str]]] = {
    "module": {},
    "name": {
        r"(GeomSignature|MeshVariantResult|build_variant_model)$": (3, "variants of Warp models"),
        r"repeat_array_kernel$": (1, "a Warp kernel"),
        r"(MjlabViserScene|ViserMujocoScene)$": (3, "part of the page"),
    },
    "member": {},
    "position": _MADE_HERE,
    "parameter": _MADE_HERE,
    "required": _MADE_HERE,
    "default": {
        r"Cfg: spec_fn: ": (3, "another function of the same meaning"),
        r"RunnerCfg: logger: ": (2, "a run needs no account of a service"),
        r"ActionCfg: transmission_type: ": (4, "the kind that mjlab sets after construction"),
        r"SensorCfg: pattern: ": (2, "patterns have an offset, too"),
        r"NanGuardCfg: output_dir: ": (1, "files are in the run's folder, and not shared by users"),
    },
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_differences_from_mjlab(kind: str):
    """Find no more differences of a kind than there are reasons for."""
    found: dict[str, list[str]] = {pattern: [] for pattern in EXPECTED[kind]}
    for line in differences()[kind]:
        pattern = next((p for p in EXPECTED[kind] if re.search(p, line)), "")
        assert pattern in found, f"a difference without a reason: {line}"
        found[pattern].append(line)
    for pattern, (largest, reason) in EXPECTED[kind].items():
        assert len(found[pattern]) <= largest, f"{reason}: {found[pattern]}"


def test_each_kind_of_difference_is_expected():
    """Leave out no kind that the comparison knows."""
    assert set(differences()) == set(EXPECTED)


def reward(env):
    """Return ones."""
    return torch.ones(env.num_envs)


def test_terms_by_position():
    """Take functions and parameters first, in every kind of term but rewards."""
    kinds = (ObservationTermCfg, TerminationTermCfg, CurriculumTermCfg, MetricsTermCfg)
    for kind in (*kinds, RecorderTermCfg):
        cfg = kind(reward, {"a": 1})
        assert (cfg.func, cfg.params) == (reward, {"a": 1}), kind
    event = EventTermCfg(reward, {"a": 1}, mode="reset")
    assert (event.func, event.params, event.mode) == (reward, {"a": 1}, "reset")
    assert TerminationTermCfg(reward, {}, True).time_out
    assert RewardTermCfg({"a": 1}, func=reward, weight=2.0).params == {"a": 1}
    term = ObservationTermCfg(reward, {}, None, (-1.0, 1.0), 2.0, 1, 3)
    assert (term.clip, term.scale, term.delay_min_lag, term.delay_max_lag) == ((-1, 1), 2, 1, 3)
    group = ObservationGroupCfg({"ones": term}, False, 0, True, 4)
    assert group == ObservationGroupCfg(
        terms={"ones": term},
        concatenate_terms=False,
        concatenate_dim=0,
        enable_corruption=True,
        history_length=4,
    )
    for refused in (lambda: EventTermCfg(reward, {}, "reset"), lambda: RewardTermCfg({}, reward)):
        with pytest.raises(TypeError, match="positional argument"):
            refused()


def test_entities_by_position():
    """Take states, specs and articulations in order, also in classes that derive from these."""
    state = EntityCfg.InitialStateCfg((0, 0, 1), (1, 0, 0, 0), (1, 0, 0), (0, 0, 2), {"a": 0.5})
    assert (state.pos, state.ang_vel, state.joint_pos) == ((0, 0, 1), (0, 0, 2), {"a": 0.5})
    info = EntityArticulationInfoCfg(
        (BuiltinMotorActuatorCfg(target_names_expr=("a",), effort_limit=1.0),), 0.9
    )
    cfg = EntityCfg(state, mujoco.MjSpec, info, True, (LightCfg("sun"),))
    assert (cfg.init_state, cfg.articulation, cfg.sort_actuators) == (state, info, True)
    assert cfg.lights[0].name == "sun" and info.soft_joint_pos_limit_factor == 0.9
    both = (
        TerrainEntityCfg(state).init_state,
        VariantEntityCfg(state, variants={"a": mujoco.MjSpec}),
    )
    assert both[0] == state == both[1].init_state
    assert VariantMetadata(("a", "b"), (1.0, 2.0)).world_variants("e", 3).tolist() == [0, 1, 1]
    with pytest.raises(TypeError, match="positional argument"):
        EntityCfg.InitialStateCfg((0, 0, 1), (1, 0, 0, 0), (), (), {}, {}, {"ball": (1, 0, 0, 0)})


def test_edits_of_specs_by_position():
    """Keep names first, and the order of MJCF after them."""
    assert GeomCfg(("a",), 3, 1, 0).group == 3 and GeomCfg(("a",), 3, 1, 0).contype == 1
    foot = CollisionCfg(("foot",), 1, 1, 6, 2, (0.6,))
    assert (foot.condim, foot.priority, foot.friction, foot.disable_other_geoms) == (
        6,
        2,
        (0.6,),
        1,
    )
    camera = CameraCfg("eye", "head", "fixed", None, 60.0, (0, 0, 1), (0, 1, 0, 0))
    light = LightCfg("lamp", "world", "fixed", None, "spot", False, (0, 0, 2), (0, 0, -1), 30.0)
    assert (camera.fovy, camera.pos, camera.quat) == (60.0, (0, 0, 1), (0, 1, 0, 0))
    assert (light.castshadow, light.pos, light.cutoff) == (False, (0, 0, 2), 30.0)
    spec = mujoco.MjSpec()
    spec.worldbody.add_body(name="head").add_geom(size=(0.1, 0, 0))
    camera.edit_spec(spec)
    light.edit_spec(spec)
    model = spec.compile()
    assert model.camera("eye").pos.tolist() == [0, 0, 1] == model.cam_quat[0][[0, 2, 1]].tolist()
    assert model.light("lamp").pos.tolist() == [0, 0, 2]
    assert MaterialCfg("red", (1, 0, 0, 1), True).texuniform


def test_sensors_by_position():
    """Take a name, then what the sensor is; period, latency and noise are keywords."""
    imu = ObjRef("site", "imu", "robot")
    gyro = BuiltinSensorCfg("gyro", "gyro", imu, None, 5.0)
    assert (gyro.obj, gyro.cutoff, BuiltinSensor(gyro).name) == (imu, 5.0, "robot/gyro")
    assert BuiltinSensor(name="up").name == "up" == BuiltinSensor.from_existing("up").name
    with pytest.raises(ValueError, match="neither a cfg nor a name"):
        BuiltinSensor()
    touch = ContactSensorCfg("touch", ContactMatch("geom", "foot"), None, ("found",), "netforce", 2)
    assert (touch.fields, touch.reduce, touch.num_slots) == (("found",), "netforce", 2)
    viz = RayCastSensorCfg.VizCfg((1, 0, 0, 1), (0, 1, 0, 1))
    grid = GridPatternCfg((1.0, 2.0), 0.5, (0, 0, -1))
    scan = TerrainHeightSensorCfg(
        "scan", imu, grid, "yaw", 3.0, False, (0,), True, viz, "mean", latency=0.1
    )
    assert (scan.pattern, scan.ray_alignment, scan.reduction) == (grid, "yaw", "mean")
    assert scan.viz.miss_color == (0, 1, 0, 1) and scan.latency == 0.1
    eye = CameraSensorCfg("eye", None, "robot/head", (0, 0, 0), (1, 0, 0, 0), 60.0, 64, 48)
    assert (eye.parent_body, eye.fovy, eye.width, eye.height) == ("robot/head", 60.0, 64, 48)
    assert PinholeCameraPatternCfg(16, 12, 45.0, "eye").camera_name == "eye"
    rings = RingPatternCfg((RingPatternCfg.Ring(0.1, 4),), False)
    assert len(rings.generate_rays(None, "cpu")[0]) == 4
    with pytest.raises(TypeError, match="positional argument"):
        PinholeCameraPatternCfg(16, 12, 45.0, "eye", (1.0, 1.0, 0.0, 0.0))


def test_engines_and_learners_by_position():
    """Take physics options, guards and settings of a run in order."""
    physics = MujocoCfg(0.005, "euler", 10.0, "elliptic")
    assert physics == MujocoCfg(timestep=0.005, integrator="euler", impratio=10.0, cone="elliptic")
    guard = NanGuardCfg(True, 10, "dumps", 2)
    assert guard == NanGuardCfg(
        enabled=True, buffer_size=10, output_dir="dumps", max_envs_to_dump=2
    )
    run = RslRlOnPolicyRunnerCfg(7, 16, 100, {"actor": ("actor",)}, 25)
    assert run == RslRlOnPolicyRunnerCfg(
        seed=7,
        num_steps_per_env=16,
        max_iterations=100,
        obs_groups={"actor": ("actor",)},
        save_interval=25,
    )
    assert run.max_minutes is None
    with pytest.raises(TypeError, match="positional argument"):
        NanGuardCfg(True, 10, "dumps", 2, 5)


def test_commands_managers_and_randomization_by_position():
    """Keep the order of inputs of control laws, of managers, and of randomized orientations."""
    command = ActuatorCmd(*(torch.full((1, 1), float(i)) for i in range(5)))
    assert command.effort_target.item() == 2.0 and command.vel.item() == 4.0
    env = SimpleNamespace(num_envs=1, device=torch.device("cpu"))
    assert ManagerBase(env)._env is env  # type: ignore[arg-type]
    assert ManagerBase(env).active_terms == []  # type: ignore[arg-type]
    for function in (dr.body_quat, dr.geom_quat, dr.site_quat, dr.cam_quat, dr.pseudo_inertia):
        assert [*inspect.signature(function).parameters][-2:] == ["distribution", "asset_cfg"]
