"""A task each of whose parts keeps state of another kind, which only the named ones save."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
import torch

from manyworlds.actuator import IdealPdActuator, IdealPdActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg
from manyworlds.envs import ManagerBasedRlEnvCfg, mdp
from manyworlds.envs.mdp.actions import JointPositionAction, JointPositionActionCfg
from manyworlds.managers import (
    CommandTerm,
    CommandTermCfg,
    CurriculumTermCfg,
    EventTermCfg,
    ManagerTermBase,
    MetricsTermCfg,
    ObservationGroupCfg,
    ObservationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from manyworlds.scene import SceneCfg
from manyworlds.sensor import Sensor, SensorCfg
from manyworlds.signals import DelayBuffer, NoiseModel, NoiseModelCfg, UniformNoiseCfg

PENDULUM = """
<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="hinge" axis="0 1 0" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.4" size=".03"/>
    </body>
  </worldbody>
</mujoco>
"""


def hinge(env: Any) -> torch.Tensor:
    """Angles of the pendulums [rad], shape [num_envs, 1]."""
    return env.scene["robot"].data.joint_pos


class Term(ManagerTermBase):
    """Keeps, beside its state, constants, a table, and views of what others keep."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(env)
        self.cfg, self.robot = cfg, env.scene["robot"]
        self.joint_ids = torch.tensor([0])
        self.table = {"gains": [np.linspace(0, 1, 5), torch.arange(5.0).expand(3, 5)]}
        self.qpos, self.masses = env.sim.data.qpos[:, :1], env.sim.model.body_mass
        self.array = env.sim.data.qvel.numpy()
        self.others = [env, env.scene, self]


class MeanReward(Term):
    """Keeps a tensor, which it replaces."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.mean = torch.zeros(env.num_envs)
        self.action = env.action_manager.action[:, 0]

    def __call__(self, env: Any) -> torch.Tensor:
        """Reward what is above the mean so far."""
        self.mean = 0.9 * self.mean + 0.1 * hinge(env).squeeze(1)
        return hinge(env).squeeze(1) - self.mean


class LateObservation(Term):
    """Keeps a deque of tensors that grows."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.past: deque[torch.Tensor] = deque(maxlen=4)

    def __call__(self, env: Any) -> torch.Tensor:
        """Observe the oldest."""
        self.past.append(hinge(env).clone())
        return self.past[0]


@dataclass(kw_only=True)
class WalkCommandCfg(CommandTermCfg):
    """Goals that wander."""

    cls: type[CommandTerm]

    def build(self, env: Any) -> CommandTerm:
        """Make the term."""
        return self.cls(self, env)


class WalkCommand(CommandTerm):
    """Keeps a tensor, and a random generator of its own."""

    def __init__(self, cfg: WalkCommandCfg, env: Any) -> None:
        super().__init__(cfg, env)
        self.goal = torch.zeros(self.num_envs, 1)
        self.source = torch.Generator().manual_seed(1)

    @property
    def command(self) -> torch.Tensor:
        """Angles to reach [rad], shape [num_envs, 1]."""
        return self.goal

    def _resample_command(self, env_ids: torch.Tensor) -> None:
        self.goal[env_ids] = 0.0

    def _update_command(self, env_ids: torch.Tensor | None) -> None:
        self.goal += 0.1 * torch.randn(self.goal.shape, generator=self.source)

    def _update_metrics(self) -> None:
        """Nothing to log."""


@dataclass(kw_only=True)
class SmoothActionCfg(JointPositionActionCfg):
    """Targets that follow actions slowly."""

    cls: type[JointPositionAction]

    def build(self, env: Any) -> JointPositionAction:
        """Make the term."""
        return self.cls(self, env)


class SmoothAction(JointPositionAction):
    """Keeps a list of tensors."""

    def __init__(self, cfg: SmoothActionCfg, env: Any) -> None:
        super().__init__(cfg, env)
        self.stages = [torch.zeros(env.num_envs, 1) for _ in range(2)]

    def process_actions(self, actions: torch.Tensor) -> None:
        """Pass actions through two filters."""
        for i, stage in enumerate(self.stages):
            actions = self.stages[i] = stage + 0.3 * (actions - stage)
        super().process_actions(actions)


class Gusts(Term):
    """Keeps an array, a number and a generator of NumPy's."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.wind, self.calls, self.source = np.zeros(env.num_envs), 0, np.random.default_rng(2)

    def __call__(self, env: Any, env_ids: Any) -> None:
        """Push the pendulums."""
        self.calls += 1
        self.wind += 0.01 * self.source.standard_normal(env.num_envs) * (self.calls % 3)
        env.sim.data.qvel[:, 0] += torch.from_numpy(self.wind).float()


@dataclass(kw_only=True)
class LagSensorCfg(SensorCfg):
    """Angles that arrive late."""

    cls: Any

    def build(self) -> Sensor:
        """Make the sensor."""
        return self.cls(self)


class LagSensor(Sensor[torch.Tensor]):
    """Keeps a buffer, which has state of its own."""

    def __init__(self, cfg: LagSensorCfg) -> None:
        super().__init__()
        self.cfg = cfg

    def edit_spec(self, scene_spec: mujoco.MjSpec, entities: dict[str, Any]) -> None:
        """Find the entity."""
        self.entity = entities["robot"]

    def initialize(self, mj_model: Any, model: Any, data: Any, device: torch.device) -> None:
        """Make the buffer."""
        self.buffer = DelayBuffer(1, 3, len(data.qpos), device)
        self.buffer.append(torch.zeros(len(data.qpos), 1))

    def update(self, dt: float) -> None:
        """Take in the present angles."""
        super().update(dt)
        self.buffer.append(self.entity.data.joint_pos)

    def _compute_data(self) -> torch.Tensor:
        return self.buffer.compute()


class TiringActuator(IdealPdActuator):
    """Keeps a tensor that its update advances."""

    def initialize(self, mj_model: Any, model: Any, data: Any, device: torch.device) -> None:
        """Begin rested."""
        super().initialize(mj_model, model, data, device)
        self.fatigue = torch.zeros(len(data.qpos), 1)

    def compute(self, cmd: Any) -> torch.Tensor:
        """Return weaker efforts the more was done."""
        effort = super().compute(cmd) / (1.0 + self.fatigue)
        self.fatigue += 0.01 * effort.abs()
        return effort


@dataclass(kw_only=True)
class TiringActuatorCfg(IdealPdActuatorCfg):
    """A motor that tires."""

    cls: type[IdealPdActuator] = TiringActuator

    def build(self, entity: Any, target_ids: Any, target_names: Any) -> IdealPdActuator:
        """Make the actuator."""
        return self.cls(self, entity, target_ids, target_names)


class DriftNoise(NoiseModel):
    """Keeps a number."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.drift = 0.0

    def __call__(self, data: torch.Tensor) -> torch.Tensor:
        """Drift a little further."""
        self.drift += 0.01
        return super().__call__(data) + self.drift


class DriftNoiseCfg(NoiseModelCfg):
    """Noise that drifts."""

    class_type = DriftNoise


class SteepCurriculum(Term):
    """Keeps a dict."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.level = {"slope": 0.0, "counts": (0, 0)}

    def __call__(self, env: Any, env_ids: torch.Tensor) -> float:
        """Turn gravity a little."""
        first, second = self.level["counts"]
        self.level = {"slope": self.level["slope"] + 0.1, "counts": (first + 1, second + 2)}
        env.scene["robot"].data.default_joint_pos[:] = self.level["slope"] + 0.1 * first
        return self.level["slope"]


@dataclass
class Limits:
    """Termination terms."""

    steps: torch.Tensor
    bounds: list[int] = field(default_factory=lambda: [7, 11])


class Tired(Term):
    """Keeps a dataclass."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.limits = Limits(torch.arange(env.num_envs))

    def __call__(self, env: Any) -> torch.Tensor:
        """End every seventh call, and later ever less often."""
        self.limits.steps = self.limits.steps + 1
        done = self.limits.steps % self.limits.bounds[0] == 0
        self.limits.bounds[0] += int(done.any())
        return done


class Dice(Term):
    """Keeps a generator of Python's."""

    def __init__(self, cfg: Any, env: Any) -> None:
        super().__init__(cfg, env)
        self.source = random.Random(3)

    def __call__(self, env: Any) -> torch.Tensor:
        """Log a number."""
        return torch.full((env.num_envs,), self.source.random())


STATE: dict[type, tuple[str, ...]] = {
    MeanReward: ("mean",),
    LateObservation: ("past",),
    WalkCommand: ("goal", "source"),
    SmoothAction: ("stages",),
    Gusts: ("wind", "calls", "source"),
    LagSensor: ("buffer",),
    TiringActuator: ("fatigue",),
    DriftNoise: ("drift",),
    SteepCurriculum: ("level",),
    Tired: ("limits",),
    Dice: ("source",),
}
"""State of each class."""


def named(cls: Any) -> Any:
    """Make a class of the same name that names its state."""
    state = (*cls.state_attributes, *STATE[cls])
    return type(cls.__name__, (cls,), {"state_attributes": state})


def task(names_state: bool) -> ManagerBasedRlEnvCfg:
    """Configure four pendulums."""
    as_is = named if names_state else lambda cls: cls
    motor = TiringActuatorCfg(
        target_names_expr=(".*",), stiffness=5.0, damping=0.1, cls=as_is(TiringActuator)
    )
    robot = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(PENDULUM),
        articulation=EntityArticulationInfoCfg(actuators=(motor,)),
    )
    noise = type("Noise", (DriftNoiseCfg,), {"class_type": as_is(DriftNoise)})(
        noise_cfg=UniformNoiseCfg(n_min=-0.1, n_max=0.1)
    )
    lag = LagSensorCfg(name="lag", cls=as_is(LagSensor))
    late = LagSensorCfg(name="late", cls=as_is(LagSensor), latency=0.05, noise=noise)
    terms = {
        "angle": ObservationTermCfg(func=lambda env: hinge(env), noise=noise),
        "late": ObservationTermCfg(func=as_is(LateObservation)),
        "goal": ObservationTermCfg(
            func=mdp.generated_commands, params={"command_name": "walk"}, delay_max_lag=2
        ),
        "lag": ObservationTermCfg(func=lambda env: env.scene["lag"].data, history_length=2),
        "lagged": ObservationTermCfg(func=lambda env: env.scene["late"].data),
    }
    cfg = ManagerBasedRlEnvCfg(
        scene=SceneCfg(num_envs=4, entities={"robot": robot}, sensors=(lag, late)),
        decimation=4,
        seed=5,
        observations={"actor": ObservationGroupCfg(terms=terms, enable_corruption=True)},
        actions={
            "smooth": SmoothActionCfg(
                entity_name="robot", actuator_names=(".*",), cls=as_is(SmoothAction)
            )
        },
        rewards={"mean": RewardTermCfg(func=as_is(MeanReward), weight=1.0)},
        terminations={"tired": TerminationTermCfg(func=as_is(Tired))},
        commands={"walk": WalkCommandCfg(resampling_time_range=(0.1, 0.3), cls=as_is(WalkCommand))},
        curriculum={"steep": CurriculumTermCfg(func=as_is(SteepCurriculum))},
        metrics={"dice": MetricsTermCfg(func=as_is(Dice))},
    )
    cfg.events["gusts"] = EventTermCfg(func=as_is(Gusts), mode="step")
    return cfg
