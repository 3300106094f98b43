"""What the reset of a world leaves alone in the others, and what an episode begins with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mujoco
import pytest
import torch

from manyworlds.actuator import (
    Actuator,
    ActuatorCfg,
    ActuatorCmd,
    BuiltinMotorActuatorCfg,
    BuiltinPositionActuatorCfg,
    DcMotorActuatorCfg,
    IdealPdActuatorCfg,
    LearnedLstmActuatorCfg,
    LearnedMlpActuatorCfg,
    TransmissionType,
    XmlActuatorCfg,
)
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg, mdp
from manyworlds.managers import (
    EventTermCfg,
    ManagerTermBase,
    ObservationGroupCfg,
    ObservationTermCfg,
    TerminationTermCfg,
)
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sensor import BuiltinSensorCfg, ObjRef
from manyworlds.signals import ConstantNoiseCfg, NoiseModel, NoiseModelCfg
from manyworlds.sim import Simulation, SimulationCfg

ARM = """
<mujoco>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping=".1" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <body name="lower" pos=".3 0 0">
        <joint name="elbow" axis="0 1 0" damping=".1" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
ALL: dict[str, Any] = {"target_names_expr": (".*",)}
LATE: dict[str, Any] = {"delay_min_lag": 8, "delay_max_lag": 8}
LEARNED: dict[str, Any] = {
    **{"pos_scale": 1.0, "vel_scale": 0.1, "torque_scale": 2.0},
    **{"effort_limit": 5.0, "saturation_effort": 8.0, "velocity_limit": 20.0},
}


class _Lstm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(2, 4, batch_first=True)
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, memory: tuple[torch.Tensor, torch.Tensor]):
        y, memory = self.lstm(x, memory)
        return self.head(y[:, 0]), memory


class CountingActuator(Actuator["CountingActuatorCfg"]):
    """Motors whose efforts are the number of physics steps of the episode."""

    state_attributes = (*Actuator.state_attributes, "count")

    def edit_spec(self, spec: mujoco.MjSpec, target_names: list[str]) -> None:
        """Create the motors."""
        motor = BuiltinMotorActuatorCfg(**ALL, effort_limit=100.0)
        part = motor.build(self.entity, list(range(len(target_names))), target_names)
        part.edit_spec(spec, target_names)
        self._mjs_actuators += part._mjs_actuators

    def initialize(self, mj_model, model, data, device) -> None:
        """Begin with no step."""
        super().initialize(mj_model, model, data, device)
        self.count = torch.zeros(data.qpos.shape[0], 1, device=device)

    def reset(self, env_ids=None) -> None:
        """Forget the steps of some worlds."""
        super().reset(env_ids)
        self.count[slice(None) if env_ids is None else env_ids] = 0.0

    def compute(self, cmd: ActuatorCmd) -> torch.Tensor:
        """Count."""
        self.count += 1.0
        return cmd.position_target * 0.0 + self.count


@dataclass(kw_only=True)
class CountingActuatorCfg(ActuatorCfg):
    """Makes one."""

    target_names_expr: tuple[str, ...] = field(default=(".*",))

    def build(
        self, entity: Any, target_ids: list[int], target_names: list[str]
    ) -> CountingActuator:
        """Build the actuator."""
        return CountingActuator(self, entity, target_ids, target_names)


def _mlp(folder: Path) -> str:
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    torch.jit.script(network).save(folder / "mlp.pt")
    return str(folder / "mlp.pt")


def _lstm(folder: Path) -> str:
    torch.manual_seed(2)
    torch.jit.script(_Lstm()).save(folder / "lstm.pt")
    return str(folder / "lstm.pt")


PD: dict[str, Any] = {**ALL, "stiffness": 5.0, "damping": 0.2}
ACTUATORS: dict[str, Callable[[Path], ActuatorCfg]] = {
    "position": lambda _: BuiltinPositionActuatorCfg(**PD),
    "late position": lambda _: BuiltinPositionActuatorCfg(**PD, **LATE),
    "ideal": lambda _: IdealPdActuatorCfg(**PD),
    "late ideal": lambda _: IdealPdActuatorCfg(**PD, **LATE),
    "late motor": lambda _: DcMotorActuatorCfg(
        **PD, **LATE, effort_limit=5.0, saturation_effort=8.0, velocity_limit=20.0
    ),
    "mlp": lambda folder: LearnedMlpActuatorCfg(**ALL, **LEARNED, network_file=_mlp(folder)),
    "late mlp": lambda folder: LearnedMlpActuatorCfg(
        **ALL, **LEARNED, **LATE, network_file=_mlp(folder)
    ),
    "lstm": lambda folder: LearnedLstmActuatorCfg(**ALL, **LEARNED, network_file=_lstm(folder)),
    "of a user": lambda _: CountingActuatorCfg(),
}


def _fails(env: ManagerBasedRlEnv) -> torch.Tensor:
    """End the episode of the worlds that the test names."""
    return env.failing if hasattr(env, "failing") else torch.zeros(env.num_envs, dtype=torch.bool)


def make_env(robot: EntityCfg, engine: str = "native", num_envs: int = 3, **fields: Any):
    """Build an environment whose action is joint positions, unless `fields` has others."""
    terms = {"q": ObservationTermCfg(func=mdp.joint_pos_rel)}
    cfg = ManagerBasedRlEnvCfg(
        decimation=4,
        sim=SimulationCfg(engine=engine),
        **{
            "scene": SceneCfg(num_envs=num_envs, entities={"robot": robot}),
            "observations": {"actor": ObservationGroupCfg(terms=terms)},
            "actions": {
                "q": mdp.JointPositionActionCfg(entity_name="robot", actuator_names=(".*",))
            },
            "terminations": {"fails": TerminationTermCfg(func=_fails)},
            **fields,
        },
    )
    return ManagerBasedRlEnv(cfg, device="cpu")


def arm(*actuators: ActuatorCfg, xml: str = ARM, **init: Any) -> EntityCfg:
    """Configure an arm in its default pose."""
    state = {"joint_pos": {"shoulder": 0.8, "elbow": -0.5}, **init}
    return EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(xml),
        init_state=EntityCfg.InitialStateCfg(**state),
        articulation=EntityArticulationInfoCfg(actuators=actuators),
    )


def _ride(env: ManagerBasedRlEnv, resets: bool, steps: int = 6) -> list[torch.Tensor]:
    """Return controls and positions of world 0 while world 1 fails in every step, or never."""
    env.failing = torch.tensor([False, resets, False])
    seen = []
    for step in range(steps):
        action = torch.full((3, 2), 0.1 * (step + 1))
        env.step(action)
        sim = env.sim.data
        seen.append(torch.cat([sim.ctrl[0], sim.qpos[0], sim.qvel[0]]).clone())
    return seen


@pytest.mark.parametrize("engine", ["native", "warp"])
@pytest.mark.parametrize("kind", ACTUATORS)
def test_nothing_of_an_actuator_moves_while_another_world_resets(kind, engine, tmp_path):
    """Drive a world alike whether its neighbor resets in every step or never."""
    alone = _ride(make_env(arm(ACTUATORS[kind](tmp_path)), engine), resets=False)
    beside = _ride(make_env(arm(ACTUATORS[kind](tmp_path)), engine), resets=True)
    for ours, other in zip(alone, beside, strict=True):
        assert torch.equal(ours, other)


@pytest.mark.parametrize("kind", ["mlp", "lstm", "of a user", "late ideal"])
def test_an_episode_is_the_same_in_whichever_company_it_begins(kind, tmp_path):
    """Repeat the first episode after a reset of one world, of some, and of all."""
    env = make_env(arm(ACTUATORS[kind](tmp_path)))
    first = _ride(env, resets=False)
    for worlds in ([0], [0, 2], None):
        env.reset(env_ids=worlds)
        assert all(map(torch.equal, first, _ride(env, resets=False)))


def test_a_delay_counts_physics_steps_while_another_world_resets():
    """Let a target of 8 physics steps ago arrive after two control steps of 4, not after one."""
    env = make_env(arm(BuiltinPositionActuatorCfg(**PD, **LATE)))
    env.failing = torch.tensor([False, True, False])
    default = env.scene["robot"].data.default_joint_pos[0]
    start = env.sim.data.ctrl[0].clone()
    for step, expected in enumerate((start, start, default + 0.1, default + 0.2)):
        env.step(torch.full((3, 2), 0.1 * (step + 1)))
        torch.testing.assert_close(env.sim.data.ctrl[0], expected)


def test_memories_of_networks_begin_with_the_first_physics_step(tmp_path):
    """Leave memories empty at a reset: the network sees the first state once."""
    env = make_env(arm(ACTUATORS["lstm"](tmp_path)))
    (actuator,) = env.scene["robot"].actuators
    assert not actuator._hidden.any()
    env.step(torch.zeros(3, 2))
    assert actuator._hidden.any()
    env.reset(env_ids=[1])
    assert actuator._hidden[:, 0].any() and not actuator._hidden[:, 1].any()


class DriftingNoise(NoiseModel):
    """Adds the number of observations of the episode."""

    state_attributes = ("count",)

    def __init__(self, noise_model_cfg, num_envs, device) -> None:
        super().__init__(noise_model_cfg, num_envs, device)
        self.count = torch.zeros(num_envs, 1, device=device)

    def reset(self, env_ids=None) -> None:
        """Forget the observations of some worlds."""
        self.count[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Count."""
        self.count += 1.0
        return data + self.count


@dataclass(kw_only=True)
class DriftingNoiseCfg(NoiseModelCfg):
    """Makes one."""

    class_type = DriftingNoise


DRIFT = DriftingNoiseCfg(noise_cfg=ConstantNoiseCfg(bias=0.0))


class SmoothPosition(ManagerTermBase):
    """Number of calls in the episode of each world, behind the positions."""

    state_attributes = ("count",)

    def __init__(self, cfg: ObservationTermCfg, env: ManagerBasedRlEnv) -> None:
        super().__init__(env)
        self.count = torch.zeros(env.num_envs, 1)

    def reset(self, env_ids=None) -> None:
        """Forget the calls in some worlds."""
        self.count[slice(None) if env_ids is None else env_ids] = 0.0

    def __call__(self, env: ManagerBasedRlEnv) -> torch.Tensor:
        """Count."""
        self.count += 1.0
        return torch.cat([mdp.joint_pos_rel(env), self.count], dim=1)


def _measured(env: ManagerBasedRlEnv) -> torch.Tensor:
    return env.scene["tip"].data


REMEMBERING: dict[str, ObservationTermCfg] = {
    "noise": ObservationTermCfg(func=mdp.joint_pos_rel, noise=DRIFT),
    "term": ObservationTermCfg(func=SmoothPosition),
    "late": ObservationTermCfg(func=mdp.joint_pos_rel, delay_min_lag=2, delay_max_lag=2),
    "history": ObservationTermCfg(func=mdp.joint_pos_rel, history_length=3),
    "sensor": ObservationTermCfg(func=_measured),
}
TIP: dict[str, Any] = {
    **{"name": "tip", "sensor_type": "jointpos"},
    "obj": ObjRef(type="joint", name="elbow", entity="robot"),
}
SENSORS = {
    "periodic": BuiltinSensorCfg(**TIP, update_period=0.1, noise=DRIFT),
    "late": BuiltinSensorCfg(**TIP, latency=0.03, noise=DRIFT),
    "prompt": BuiltinSensorCfg(**TIP, noise=DRIFT),
}


@pytest.mark.parametrize("automatic", [True, False])
@pytest.mark.parametrize(
    ("term", "sensor"),
    [*((name, "prompt") for name in REMEMBERING), ("sensor", "periodic"), ("sensor", "late")],
)
def test_nothing_that_observes_a_world_moves_while_another_resets(term, sensor, automatic):
    """Observe a world alike whether its neighbor resets in every step or never."""

    def observe(resets: bool) -> list[torch.Tensor]:
        group = ObservationGroupCfg(terms={"x": REMEMBERING[term]}, enable_corruption=True)
        robot = arm(BuiltinPositionActuatorCfg(**PD))
        robot_scene = SceneCfg(num_envs=3, entities={"robot": robot}, sensors=(SENSORS[sensor],))
        env = make_env(
            robot, observations={"actor": group}, scene=robot_scene, auto_reset=automatic
        )
        env.failing = torch.tensor([False, resets and automatic, False])
        seen = []
        for step in range(8):
            obs = env.step(torch.full((3, 2), 0.1 * step))[0]
            if resets and not automatic:
                obs, _ = env.reset(env_ids=[1])
            seen.append(obs["actor"][0].clone())
        return seen

    for ours, other in zip(observe(False), observe(True), strict=True):
        assert torch.equal(ours, other)


HELD = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="upper" pos="0 0 1" gravcomp="1">
      <joint name="shoulder" axis="0 1 0" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
      <site name="a" pos="0 0 .1"/>
      <body name="lower" pos=".3 0 0" gravcomp="1">
        <joint name="elbow" axis="0 1 0" armature=".01"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/>
        <site name="tip" pos=".2 0 .1"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="sum"><joint joint="shoulder" coef="1"/><joint joint="elbow" coef="-2"/></fixed>
    <spatial name="string"><site site="a"/><site site="tip"/></spatial>
  </tendon>
  <actuator>{}</actuator>
  <sensor><accelerometer name="imu" site="tip"/></sensor>
  <keyframe><key name="home" qpos=".8 -.5" act="{}"/></keyframe>
</mujoco>
"""
BOTH = '{0} joint="shoulder" {1}/>{0} joint="elbow" {1}/>'
SERVOS: dict[str, str] = {
    "position": BOTH.format("<position", 'kp="50" kv="1"'),
    "geared": BOTH.format("<position", 'kp="50" gear="-3"'),
    "filtered": BOTH.format("<position", 'kp="50" timeconst=".1"'),
    "filtered, geared": BOTH.format("<position", 'kp="50" timeconst=".1" gear="2"'),
    "velocity by position": BOTH.format("<intvelocity", 'kp="50"'),
    "delayed by MuJoCo": BOTH.format("<position", 'kp="50" delay=".02" nsample="16"'),
    "general": BOTH.format(
        "<general", 'gainprm="2" biastype="affine" biasprm=".3 -50 -1" dyntype="filter" dynprm=".1"'
    ),
    "pid": BOTH.format("<pid", 'kp="50" slewmax="1"'),
    "tendon": '<position tendon="sum" kp="50" gear="2"/><position tendon="string" kp="50"/>',
    "late tendon": '<position tendon="sum" kp="50" timeconst=".1"/><motor joint="elbow"/>',
}


def _jerks(engine: str, robot: EntityCfg, actions: dict[str, Any]) -> ManagerBasedRlEnv:
    """Build an environment whose first observation has accelerations, and check these."""

    def accelerations(env: ManagerBasedRlEnv) -> torch.Tensor:
        return torch.cat([env.scene["robot"].data.joint_acc, env.scene["robot/imu"].data], dim=1)

    terms = {"acc": ObservationTermCfg(func=accelerations)}
    env = make_env(
        robot, engine, observations={"actor": ObservationGroupCfg(terms=terms)}, actions=actions
    )
    for observe in (env.reset, lambda: env.reset(env_ids=[1])):
        obs, _ = observe()
        joints, imu = obs["actor"].split((2, 3), dim=1)
        near: dict[str, float] = {"atol": 0.02, "rtol": 0.0}
        torch.testing.assert_close(joints, torch.zeros(3, 2), **near)
        torch.testing.assert_close(imu.norm(dim=1), torch.full((3,), 9.81), **near)
    return env


def _stays(env: ManagerBasedRlEnv) -> None:
    """Check that the default pose holds without an action that says so."""
    for _ in range(25):
        env.step(torch.zeros(3, env.action_manager.total_action_dim))
    data = env.scene["robot"].data
    torch.testing.assert_close(data.joint_pos, data.default_joint_pos, atol=2e-3, rtol=0.0)


@pytest.mark.parametrize(
    ("kind", "followed", "engine"),
    [
        (kind, followed, engine)
        for kind in SERVOS
        for followed in (True, False)
        for engine in ("native", "warp")
        # No configuration follows actuators with two controls, or controls in units of their own.
        if not (followed and kind in ("pid", "general"))
        and not (engine == "warp" and kind == "pid")  # which MuJoCo Warp does not have
    ],
)
def test_servos_that_no_action_drives_hold_the_default_pose(kind, followed, engine):
    """Rest in the first observation and later: about 0 rad/s2 and 9.81 m/s2."""
    part = "tendon" if "tendon" in kind else "joint"
    names = ("sum", "string") if kind == "tendon" else ("sum",) if part == "tendon" else (".*",)
    cfg = XmlActuatorCfg(target_names_expr=names, transmission_type=TransmissionType(part))
    xml = HELD.format(SERVOS[kind], "")
    _stays(_jerks(engine, arm(*([cfg] if followed else []), xml=xml), {}))


@pytest.mark.parametrize("kind", ["position", "late position", "ideal", "late ideal", "late motor"])
def test_the_first_observation_is_at_rest(kind, tmp_path):
    """Begin with the targets of the default pose, from the build and after each reset."""
    env = _jerks("native", arm(ACTUATORS[kind](tmp_path), xml=HELD.format("", "")), {})
    data = env.scene["robot"].data
    assert torch.equal(data.joint_pos_target, data.default_joint_pos)
    assert not data.joint_vel_target.any() and not data.joint_effort_target.any()
    _stays(env)


def test_targets_begin_at_the_defaults_of_each_world():
    """Follow defaults that a world has for itself, and forget what was commanded."""
    env = make_env(arm(BuiltinPositionActuatorCfg(**PD)))
    data = env.scene["robot"].data
    data.default_joint_pos[1] += 0.25
    env.step(torch.ones(3, 2))
    before = data.joint_pos_target.clone()
    env.reset(env_ids=[1])
    assert torch.equal(data.joint_pos_target[1], data.default_joint_pos[1])
    assert torch.equal(data.joint_pos_target[[0, 2]], before[[0, 2]])


def test_targets_hold_the_default_pose_from_the_build_of_a_scene():
    """Have the targets, and the activations, before any reset."""
    robot = arm(XmlActuatorCfg(**ALL), xml=HELD.format(SERVOS["filtered, geared"], ""))
    scene = Scene(SceneCfg(num_envs=2, entities={"robot": robot}))
    sim = Simulation(2, spec=scene.spec)
    scene.initialize(sim.mj_model, sim.model, sim.data)
    data = scene["robot"].data
    pose = torch.tensor([[0.8, -0.5]]).expand(2, 2)
    torch.testing.assert_close(data.joint_pos_target, pose)
    torch.testing.assert_close(sim.data.act, 2.0 * pose)


def test_activations_are_those_of_the_keyframe():
    """Take activations from the file's keyframe if the default pose is from there."""
    xml = HELD.format(SERVOS["filtered"], ".9 -.4")
    env = make_env(arm(XmlActuatorCfg(**ALL), xml=xml, joint_pos=None), actions={})
    expected = torch.tensor([[0.9, -0.4]]).expand(3, 2)
    torch.testing.assert_close(env.sim.data.act, expected)
    env.step(torch.zeros(3, 0))
    env.reset(env_ids=[1])
    torch.testing.assert_close(env.sim.data.act[1], expected[1])
    assert not torch.allclose(env.sim.data.act[0], expected[0])


def test_randomized_gears_are_followed_by_resumed_environments():
    """Send the same controls after loading a state, with gears of its own in each world."""
    gears = EventTermCfg(
        func=mdp.dr.actuator_gear,
        mode="reset",
        params={"ranges": {0: (0.9, 1.1)}, "operation": "scale"},
    )
    robot = arm(XmlActuatorCfg(**ALL), xml=HELD.format(SERVOS["geared"], ""))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = make_env(robot, events={"gears": gears})
        state = env.state_dict()
        env.step(torch.full((3, 2), 0.1))
        ctrl = env.sim.data.ctrl.clone()
        env.reset(env_ids=[1])
        env.step(torch.full((3, 2), 0.1))
        env.load_state_dict(state)
        env.step(torch.full((3, 2), 0.1))
        env.state_dict()
    assert torch.equal(env.sim.data.ctrl, ctrl)
    own = env.sim.model.actuator_gear[..., 0]
    torch.testing.assert_close(ctrl, own * (env.scene["robot"].data.default_joint_pos + 0.1))
