"""A trained policy as the controller of a robot."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from manyworlds.actuator.builtin_actuator import POSITION_CELLS, VELOCITY_CELLS
from manyworlds.lab.robots.control import POLICY, RobotControl
from manyworlds.lab.robots.controllers import Controller, RobotActuators
from manyworlds.rl import OnnxPolicy
from manyworlds.rl.policy_description import ActuatorDescription, NeedsEnvironmentError

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab

_GAINS = {
    "BuiltinPositionActuator": POSITION_CELLS,
    "XmlPositionActuator": POSITION_CELLS,
    "BuiltinVelocityActuator": VELOCITY_CELLS,
    "XmlVelocityActuator": VELOCITY_CELLS,
}
"""Model arrays with the gains of trained actuators; other gains are in the policy's own laws."""


class PolicyController(Controller):
    """Controls a robot by a trained policy while `policy` owns it, exactly as `OnnxPolicy.step`.

    While another client owns the robot, its targets are the controls; the policy restarts when it
    owns the robot again.

    Args:
        path: the policy, exported (`.onnx`) or a checkpoint in its run folder (`.pt`).
        model: the lab's model.
        robot: controls of the robot; the policy must control exactly its actuators. Its name may
            differ from that in training, so that one policy controls several robots.
        commands: values of the command terms, by name; 0 by default.

    Raises:
        NeedsEnvironmentError: the robot has other actuators, too; the message names them.
        ValueError: the policy does not fit the robot or the model; the message names the
            differences.
        FileNotFoundError: there is no such policy.
    """

    name = owner = POLICY

    def __init__(
        self,
        path: str | Path,
        model: mujoco.MjModel,
        robot: RobotControl,
        commands: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        with exported(Path(path)) as file:
            self.policy = OnnxPolicy(
                file, model, commands=commands, check_timestep=False, prefix=_prefix(model, robot)
            )
        self.policy.path = Path(path)
        self._robot = robot
        moved = {int(model.actuator(name).id) for name in self.policy.actuator_names}
        own = set(robot.actuators.actuator_ids.tolist())
        if moved != own:
            differences = []
            if own - moved:
                differences.append(f"does not control {_actuator_names(model, own - moved)}")
            if moved - own:
                differences.append(f"also controls {_actuator_names(model, moved - own)}")
            message = (
                f"The policy '{path}' does not fit the robot '{robot.name}': it "
                f"{'; it '.join(differences)}."
            )
            if moved < own:
                raise NeedsEnvironmentError(message)  # which holds the others where they begin
            raise ValueError(message)
        self.differences: list[str] = []
        """Differences between the model and that of training, as text."""
        if not self._is_in_step(model):
            here, trained = model.opt.timestep, self.policy.timestep
            self.differences.append(f"timestep: {here:g} s, in training {trained:g} s")
        self._gains: list[tuple[str, int, int, float]] = []
        for item in self.policy.description["actuators"]:
            self._compare_gains(model, item)
        scene = Path(path).parent / "scene" / "scene.xml"
        if scene.is_file():
            self.differences += _option_differences(model, mujoco.MjSpec.from_file(str(scene)))
        self.reset()

    def adopt(self, model: mujoco.MjModel, gains: bool) -> None:
        """Set the timestep of training, and on request its gains; runs in the physics thread."""
        self.adopts_gains = gains
        """True if the world has taken over the gains of training."""
        if not self._is_in_step(model):
            model.opt.timestep = self.policy.timestep
        if gains:
            for field, row, column, value in self._gains:
                getattr(model, field)[row, column] = value

    @property
    def commands(self) -> dict[str, np.ndarray]:
        """Values of the command terms by name, each of shape [num_values]; writable."""
        return self.policy.commands

    def settings(self) -> dict[str, np.ndarray]:
        """Return the commands but for that of the motion, by name, each of shape [num_values]."""
        motion = self.policy.motion
        return {
            name: values
            for name, values in self.commands.items()
            if motion is None or name != motion.command_name
        }

    def reset(self) -> None:
        """Clear the internal state; commands stay."""
        self.policy.reset()
        self._time: float | None = None
        self._substep = 0

    def state_dict(self) -> dict[str, object]:
        """Return the internal state, with the position in the control period."""
        ctrl = None if self._time is None else self._ctrl.tolist()
        own = {"time": self._time, "substep": self._substep, "ctrl": ctrl}
        return {**own, "policy": self.policy.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Set the internal state that `state_dict` returned."""
        self._time = state["time"]
        self._substep = state["substep"]
        self._ctrl = np.array(state["ctrl"] or [])
        self.policy.load_state_dict(state["policy"])

    def rebuilt(self, model: mujoco.MjModel, actuators: RobotActuators) -> PolicyController:
        """Return a policy with the same internal state."""
        law = PolicyController(self.policy.path, model, self._robot, self.commands)
        law.load_state_dict(self.state_dict())
        law.adopt(model, gains=self.adopts_gains)
        return law

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls, shape [num_controls]; act once per control period."""
        if self._robot.owner != POLICY:
            self._time = None
            return target
        if self._time is not None and data.time == self._time:
            return self._ctrl  # the world was not advanced, for example because it is paused
        if self._time is None or data.time < self._time:
            self.reset()
            mujoco.mj_step1(model, data)
        else:
            self._substep += 1
        if self._substep == self.policy.description["decimation"]:
            self.policy.end_period(data)
            self._substep = 0
        if self._substep == 0:
            self.policy.begin_period(data)
        self.policy.apply(data)
        self._time = data.time
        self._ctrl = data.ctrl[self._robot.actuators.ids].copy()
        return self._ctrl

    def _is_in_step(self, model: mujoco.MjModel) -> bool:
        return bool(np.isclose(model.opt.timestep, self.policy.timestep, rtol=1e-6))

    def _compare_gains(self, model: mujoco.MjModel, item: ActuatorDescription) -> None:
        """Find the gains for `adopt` to write; gains that are equal keep their last digits."""
        gains = _GAINS.get(item["type"], {})
        for gain in (name for name in gains if name in item["params"]):
            field, column, unit = gains[gain][0]
            for name, wanted in zip(item["controls"], item["params"][gain], strict=True):
                row = model.actuator(name).id
                assert wanted is not None  # only limits are infinite
                value = float(getattr(model, field)[row, column] * unit)
                if np.isclose(value, wanted, rtol=1e-5):
                    continue
                self.differences.append(f"{gain} of {name}: {value:g}, in training {wanted:g}")
                self._gains += [(f, row, c, wanted * u) for f, c, u in gains[gain]]


@contextlib.contextmanager
def exported(path: Path) -> Iterator[Path]:
    """Yield a policy's ONNX file; for a checkpoint, a temporary one.

    Raises:
        FileNotFoundError: there is no such policy.
        ValueError: the checkpoint is in no run folder of a known task.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no policy '{path}': name an .onnx or a .pt file.")
    if path.suffix != ".pt":
        yield path
        return
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.rl.exporter_utils import export_policy
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.rl.runner import OnPolicyRunner
    from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
    from manyworlds.utils.config import update_from_plain

    run = RunFolder.of_checkpoint(path)
    if run is None or run.task is None:
        raise ValueError(f"'{path}' is in no run folder: name a checkpoint where it was written.")
    env_cfg = load_env_cfg(run.task)
    rl_cfg = load_rl_cfg(run.task)
    update_from_plain(env_cfg, run.env_params())
    update_from_plain(rl_cfg, run.agent_params())
    env_cfg.scene.num_envs = 1
    env = ManagerBasedRlEnv(env_cfg, device="cpu")
    try:
        make = load_runner_cls(run.task) or OnPolicyRunner
        runner = make(RslRlVecEnvWrapper(env), asdict(rl_cfg), log_dir=None, device="cpu")
        runner.load(str(path), load_cfg={"actor": True})
        with tempfile.TemporaryDirectory() as folder:
            yield export_policy(runner, Path(folder) / f"{path.stem}.onnx", task=run.task)
    finally:
        env.close()


def _prefix(model: mujoco.MjModel, robot: RobotControl) -> str | None:
    """Return the prefix of a robot's elements; None if it has no named actuators."""
    if not robot.actuators.names:
        return None
    name = robot.actuators.names[0]
    full = model.actuator(int(robot.actuators.actuator_ids[0])).name
    if not full.endswith(name):
        return None
    return full.removesuffix(name)


def _actuator_names(model: mujoco.MjModel, ids: set[int]) -> str:
    return ", ".join(model.actuator(i).name for i in sorted(ids))


def _option_differences(model: mujoco.MjModel, trained: mujoco.MjSpec) -> list[str]:
    """Return physics options, except the timestep, that differ from the scene beside a policy."""
    option = trained.option
    others = ("jacobian", "signature", "timestep")  # a Jacobian's form changes only rounding
    names = [n for n in dir(option) if not n.startswith("_") and n not in others]
    return [
        f"option {name}: {getattr(model.opt, name)}, in training {getattr(option, name)}"
        for name in names
        if not np.allclose(getattr(model.opt, name), getattr(option, name))
    ]


def start_policy(
    lab: LiveLab,
    path: str | Path,
    control: RobotControl,
    commands: Mapping[str, ArrayLike] | None,
    adopt: bool | None,
) -> PolicyController:
    """Control a robot of a lab by a policy, from the initial state; see `LiveLab.run_policy`."""
    if lab.environment is not None:
        raise RuntimeError(
            "A task's environment steps this world, with a policy of its own: open the scene "
            "in plain MuJoCo, or give the policy to LiveLab.driven_by."
        )
    if adopt is None:
        adopt = lab.world.start is None
    law = PolicyController(path, lab.world.model, control, commands)
    for other in lab.controls:
        step = getattr(getattr(other.controller, "policy", None), "timestep", None)
        if other is not control and step not in (None, law.policy.timestep):
            raise ValueError(
                f"The policy '{path}' needs a timestep of {law.policy.timestep} s, but that of "
                f"'{other.name}' needs {step} s: policies in one world need the same."
            )

    def begin(model: mujoco.MjModel, data: mujoco.MjData) -> None:
        law.adopt(model, gains=adopt)
        control.controller = law
        control.take(POLICY)

    if law.policy.motion is not None:
        # A motion starts in its own pose, not in that of the model.
        lab.loop.on_reset(lambda model, data, moved: law.policy.reset(data))
    lab.loop.do(begin)  # may change the model's timestep and gains
    lab.reset()
    return law
