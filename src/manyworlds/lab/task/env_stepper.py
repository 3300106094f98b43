"""Stepper that advances a world as the environment of a task does."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
import torch

from manyworlds.lab.loop.faults import FaultError
from manyworlds.lab.loop.steppers import ENVIRONMENT, TaskSettings
from manyworlds.lab.robots.control import POLICY, RobotControl
from manyworlds.lab.robots.controllers import Controller
from manyworlds.lab.task.env_models import ModelExchange
from manyworlds.lab.task.env_policies import EnvironmentPolicy, RecurrentPolicy, ResettablePolicy
from manyworlds.lab.task.task_steps import StepReport, plain_reset, plain_step, shapes_of
from manyworlds.lab.world.model_facts import INITIAL_KEYFRAME, STATE
from manyworlds.lab.world.world import World, world_from_env
from manyworlds.live.snapshot import WorldSnapshot, take_snapshot
from manyworlds.managers import CommandTerm
from manyworlds.sim.diagnostics.status import WorldStatus
from manyworlds.utils.overrides import overrides
from manyworlds.viewer.browser.command_sliders import Seekable, Steerable
from manyworlds.viewer.native.visualizer import MujocoNativeDebugVisualizer
from manyworlds.viewer.packed_shapes import MOST_SHAPES, pack_shapes

if TYPE_CHECKING:
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.envs.types import SubstepStage
    from manyworlds.lab.loop.physics_loop import PhysicsLoop
    from manyworlds.lab.loop.steppers import StackedStepper
    from manyworlds.live.record import WorldReplay

_INPUTS = int(
    mujoco.mjtState.mjSTATE_CTRL
    | mujoco.mjtState.mjSTATE_QFRC_APPLIED
    | mujoco.mjtState.mjSTATE_XFRC_APPLIED
    | mujoco.mjtState.mjSTATE_WARMSTART
)
"""Parts of the state that no position or velocity depends on before the next step."""
_FAILED = (
    WorldStatus.BAD_QPOS
    | WorldStatus.BAD_QVEL
    | WorldStatus.BAD_QACC
    | WorldStatus.NAN
    | WorldStatus.ENGINE_ERROR
    | WorldStatus.MEMORY
)
_WIDGETS = ("create_gui", "create_debug_vis_gui")


class EnvironmentLaw(Controller):
    """Leaves a robot's controls to the environment while `policy` owns the robot.

    The targets of other owners are the controls.

    Args:
        robot: controls of the robot.
    """

    name = ENVIRONMENT
    owner = POLICY

    def __init__(self, robot: RobotControl) -> None:
        self._robot = robot

    def compute(self, model: mujoco.MjModel, data: mujoco.MjData, target: np.ndarray) -> np.ndarray:
        """Return the controls, shape [num_controls]."""
        if self._robot.owner == POLICY:
            return data.ctrl[self._robot.actuators.ids]
        return target


def world_of_environment(env: ManagerBasedRlEnv) -> World:
    """Copy the only world of an environment, with the scene's controls as neutral ones.

    At the beginning of an episode, the environment's own controls are zero.
    """
    world = world_from_env(env, 0)
    world.shared = env.sim.mj_model
    model = world.model
    data = world.new_data()
    key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, INITIAL_KEYFRAME)
    if key >= 0:
        data.ctrl[:] = model.key_ctrl[key]
    assert world.start is not None
    mujoco.mj_getState(model, data, world.start, STATE)
    return world


class EnvironmentStepper:
    """Advances a world by the physics steps of a one-world environment.

    The environment has the authoritative state, which is bit for bit that of the same environment
    outside of a lab. After each physics step its state and its model rows are copied to the lab's
    model and data, and derived fields are computed there. Before each physics step, everything in
    the lab's data that differs from this copy is written to the environment: forces, positions,
    controls of robots that the policy does not own. Changes of the lab's model are written at the
    beginning of a control step.

    Args:
        env: the environment; the lab closes it.
        policy: maps observations to actions; None takes actions of zero.

    Raises:
        ValueError: the environment has several worlds, or its engine is not bit-exact.
    """

    name = ENVIRONMENT

    def __init__(self, env: ManagerBasedRlEnv, policy: EnvironmentPolicy | None = None) -> None:
        if env.num_envs != 1:
            raise ValueError(
                f"A lab is driven by an environment of one world, got {env.num_envs}: set "
                "cfg.scene.num_envs = 1."
            )
        if not env.sim.is_bit_exact:
            raise ValueError(
                f"A lab is driven by MuJoCo C, but this environment's engine is {env.sim.engine}: "
                "set cfg.sim.engine = 'native'."
            )
        self.env = env
        self.policy = policy
        self.steered: dict[str, tuple[float, ...]] = {}
        """Commands that a user has set, by name of the term."""
        self.differences: list[str] = []
        """Differences between the settings of the environment and those of training, as text."""
        self.replay: WorldReplay | None = None
        """Recorded steps that are repeated with their actions and random numbers; None for none."""
        self._row = np.empty(mujoco.mj_stateSize(env.sim.mj_model, STATE))
        self._now = np.empty_like(self._row)
        self._episodes = 0
        self._begin_step()
        self._last_end = ""
        self._action: torch.Tensor | None = None
        self._outcome: dict[str, object] | None = None
        self._error: Exception | None = None
        self._stacked: StackedStepper | None = None
        self._shapes: MujocoNativeDebugVisualizer | None = None
        self._reference, self._reference_data = next(iter(env.sim.world_copies()))
        self._models = ModelExchange(env, self._reference)
        self.report = self._report()

    def start(self, loop: PhysicsLoop) -> None:
        """Drive the world of a loop, whose model was copied from the environment, and no other."""
        self._leave()
        self._loop = loop
        for robot in loop.controls:
            robot.controller = EnvironmentLaw(robot)
            robot.take(POLICY)

        def begin(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            self._models.compare(model)
            self._models.take(model)  # options that the lab's config changes
            self._stacked = loop.steppers.push(self, self.name)
            self._show(model, data)

        loop.do(begin)
        self._handle = loop.on_reset(self._restart)

    def close(self) -> None:
        """Stop driving, and close the environment; for the physics thread, or without one."""
        if self._stacked is not None:
            self._leave()
            self.env.close()

    def _leave(self) -> None:
        stacked = self._stacked
        self._stacked = None
        if stacked is not None:
            self._loop.steppers.remove(stacked)
            self._handle.remove()

    @property
    def auto_reset(self) -> bool:
        """True if the end of an episode resets the world; otherwise it is only reported."""
        return self.env.cfg.auto_reset

    @auto_reset.setter
    def auto_reset(self, on: bool) -> None:
        self._loop.do(lambda model, data: self.env.set_auto_reset(on), edits_model=False)

    @property
    def substep(self) -> int:
        """Number of physics steps since the control step began."""
        return self._substep

    def steer(self, name: str, values: Sequence[float] | None) -> None:
        """Hold a command at values; None lets the task sample it again.

        Raises:
            ValueError: the task has no such command, it cannot be set, or the number of values is
                wrong.
        """
        terms = {n: self.env.command_manager.get_term(n) for n in self._command_names}
        known = [n for n, term in terms.items() if hasattr(term, "steer")]
        if name not in known:
            raise ValueError(
                f"The environment has no command '{name}' that can be set; it has: "
                f"{', '.join(known) or 'none'}."
            )
        term: Any = terms[name]
        if values is not None and len(values) != len(term.steering):
            raise ValueError(
                f"The command '{name}' has {len(term.steering)} values "
                f"({', '.join(term.steering)}), got {len(values)}."
            )
        self._loop.do(lambda model, data: self._steer(name, values), edits_model=False)

    def seek(self, name: str, frame: int) -> None:
        """Set the robot to a frame of the motion that a command term plays."""
        term: Any = self.env.command_manager.get_term(name)

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            with torch.no_grad():
                self._import_state(model, data)
                term.seek(0, frame)
            self._show(model, data)

        self._loop.do(go, edits_model=False)

    def go_to(
        self, state: dict[str, object], replay: WorldReplay | None = None, skip: int = 0
    ) -> None:
        """Continue from a state of `ManagerBasedRlEnv.world_state`, with the present policy.

        Args:
            state: the state.
            replay: recorded steps that follow the state; None for none.
            skip: number of recorded steps that are made at once.
        """

        def go(model: mujoco.MjModel, data: mujoco.MjData) -> None:
            with torch.no_grad():
                self.env.load_state_dict(state)
            self._begin_step()
            self._action = None
            self._error = None
            self._forget()
            self.replay = replay
            if replay is not None:
                replay.skip(skip, lambda: self.policy and self.policy(self.env.get_observations()))
            self._show(model, data)
            self.report = self._report()

        self._loop.do(go, edits_model=False)

    def move_to_cell(
        self, model: mujoco.MjModel, data: mujoco.MjData, level: int, column: int
    ) -> None:
        """Move the world to a cell of generated terrain, and all free bodies by as much.

        Runs in the physics thread.

        Raises:
            ValueError: there is no such cell.
        """
        terrain = self.env.scene.terrain
        if terrain is None:
            raise ValueError("This task has no terrain: there are no cells.")
        world = torch.zeros(1, dtype=torch.long)
        before = self.env.scene.env_origins[0].clone()
        self._import_state(model, data)
        terrain.place(world, torch.tensor([level]), torch.tensor([column]))
        shift = (self.env.scene.env_origins[0] - before).cpu().numpy()
        mujoco.mj_getState(self._reference, self._reference_data, self._row, STATE)
        for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            at = int(model.jnt_qposadr[joint])
            data.qpos[at : at + 3] += shift
        data.mocap_pos[:] += shift
        self._import_state(model, data)
        self._end_replay("The world was moved.")
        self._show(model, data)

    def terrain_cell(self) -> dict[str, int]:
        """Return the present `level` and `column` on generated terrain; empty on other ground."""
        terrain = self.env.scene.terrain
        if terrain is None or terrain.terrain_origins is None:
            return {}
        return {"level": int(terrain.terrain_levels[0]), "column": int(terrain.terrain_types[0])}

    def snapshot(self) -> WorldSnapshot:
        """Return the present moment of the world, with what was changed in the lab."""

        def take(model: mujoco.MjModel, data: mujoco.MjData) -> WorldSnapshot:
            self._import_state(model, data)
            return take_snapshot(self.env, 0)

        return self._loop.do(take, edits_model=False)

    def apply_gui_reset(self) -> None:
        """Reset the world as the widgets of the task's commands say."""
        world = torch.zeros(1, dtype=torch.long)
        commands = self.env.command_manager
        self._loop.do(lambda model, data: commands.apply_gui_reset(world), edits_model=False)

    def show_pause(self, paused: bool) -> None:
        """Tell the widgets of the task's commands whether the world is paused."""
        tell = self.env.command_manager.on_viewer_pause
        self._loop.post(
            lambda model, data: self._loop.reports.attempt(tell, paused), edits_model=False
        )

    def step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Advance the world by one physics step; called by the loop."""
        if self._error is not None:
            raise self._error
        with torch.no_grad():
            self._models.take(model, shared=self._substep == 0)
            self._import_state(model, data)
            steps = self._steps
            self._steps = None  # an error gives up the iterator, not the control step
            if steps is None:
                action = self._act() if self._substep == 0 else None
                steps = self.env.substeps(action, self._substep)
            next(steps)  # writes the controls
            self._write_targets(data)
            next(steps)  # runs the physics step
            self._check()
            self._substep += 1
            if self._substep < self.env.cfg.decimation:
                self._steps = steps
            else:
                self._begin_step()
                next(steps, None)  # ends the control step
                self._report_step()
        self._show(model, data)
        return True

    def restart(self, seed: int | None, reset: Callable[[], object]) -> dict[str, object]:
        """Start a new episode, and return its results; see the verb `reset_task`.

        Args:
            seed: seed of all random numbers; None keeps the present generators.
            reset: resets the lab; no step may come in between.
        """
        if seed is not None:
            self.env.seed_used = self.env.seed(seed)
        reset()
        if self._error is not None:
            raise RuntimeError(f"the task cannot be reset: {self._error}") from self._error
        return plain_reset(self.env.obs_buf, self.env.extras)

    def step_with(self, action: np.ndarray, step: Callable[[int], object]) -> Mapping[str, object]:
        """Make one control step with an action in place of the policy's; see `step_task`.

        Args:
            action: the action, shape [num_actions].
            step: advances the world by some physics steps.

        Raises:
            ValueError: the action has another size.
            RuntimeError: a control step has begun already, or another client resets the world.
        """
        width = self.env.action_manager.total_action_dim
        if action.shape != (width,):
            raise ValueError(f"The task has {width} actions, got {action.size}.")
        if self._substep:
            raise RuntimeError(
                f"{self._substep} physics steps of a control step are made: reset the task, or "
                f"step {self.env.cfg.decimation - self._substep} more."
            )
        self._action = torch.from_numpy(action).float()[None]
        self._outcome = None
        step(self.env.cfg.decimation)
        if self._outcome is None:
            raise RuntimeError("the world was reset during the control step: reset the task.")
        return self._outcome

    def memory(self) -> bytes:
        """Return everything from which the environment and the policy continue exactly."""
        own = [self._substep, self._episodes, self._last_end, dict(self.steered)]
        memory = {"env": self.env.state_dict(), "own": own}
        if isinstance(self.policy, RecurrentPolicy):
            memory["policy"] = self.policy.state_dict()
        buffer = io.BytesIO()
        torch.save(memory, buffer)
        return buffer.getvalue()

    def recall(self, memory: bytes, model: mujoco.MjModel) -> None:
        """Continue from what `memory` returned; the model takes the environment's rows.

        Raises:
            ValueError: it does not fit this environment.
        """
        saved = torch.load(io.BytesIO(memory), weights_only=True)
        self._end_replay("The world went back to another moment.")
        with torch.no_grad():
            self.env.load_state_dict(saved["env"])
            if isinstance(self.policy, RecurrentPolicy) and "policy" in saved:
                self.policy.load_state_dict(saved["policy"])
        substep, self._episodes, self._last_end, steered = saved["own"]
        self._begin_step(substep)
        self.put_settings((steered, self.auto_reset))
        self._error = None
        self._loop.model_version += self._models.give(model)
        mujoco.mj_getState(self._reference, self._reference_data, self._row, STATE)
        self.report = self._report()

    def settings(self) -> TaskSettings:
        """Return the commands that a user has set, and whether ends of episodes reset the world."""
        return dict(self.steered), self.auto_reset

    def put_settings(self, settings: TaskSettings, /) -> None:
        """Set what `settings` returned. Runs in the physics thread."""
        steered, auto_reset = settings
        for name in {*self.steered, *steered}:
            self._steer(name, steered.get(name))
        if auto_reset != self.auto_reset:
            self.env.set_auto_reset(auto_reset)

    @property
    def _command_names(self) -> list[str]:
        return list(self.env.command_manager.active_terms)

    def _act(self) -> torch.Tensor:
        replay = self.replay
        if self._action is not None:
            self._end_replay("Another client acted.")
            return self._action
        if replay is not None and not replay.ended:
            return replay.begin()
        if self.policy is None:
            return torch.zeros(1, self.env.action_manager.total_action_dim)
        return self.policy(self.env.get_observations())

    def _begin_step(self, substep: int = 0) -> None:
        """Let the next physics step begin a control step, or continue one after `substep` steps."""
        self._substep = substep
        self._steps: Iterator[SubstepStage] | None = None
        """The control step that is under way; None until its next physics step."""

    def _report_step(self) -> None:
        """Report a control step that has ended."""
        env = self.env
        if self.replay is not None and not self.replay.ended:
            self.replay.end()
        if self._action is not None:
            self._action = None
            self._outcome = plain_step(env)
        dones = env.reset_terminated | env.reset_time_outs
        if dones.any() and self.auto_reset:
            self._episodes += 1
            self._last_end = ", ".join(self._ended_by())
            self._forget(dones)
        self.report = self._report(float(env.reward_buf))

    def _restart(self, model: mujoco.MjModel, data: mujoco.MjData, moved: bool) -> None:
        """Start a new episode after a reset of the lab."""
        self._end_replay("The world was reset.")
        self._error = None
        try:
            with torch.no_grad():
                self.env.reset()
                self._forget()
            self._begin_step()
            self._action = None
            self.report = self._report()
            self._show(model, data)
        except Exception as error:  # of a term from outside this package
            self._error = error
            self._loop.fail(f"The {self.name}, at a reset,", error)

    def _end_replay(self, reason: str) -> None:
        if self.replay is not None:
            self.replay.stop(reason)

    def _forget(self, dones: torch.Tensor | None = None) -> None:
        if isinstance(self.policy, ResettablePolicy):
            self.policy.reset(dones)

    def _steer(self, name: str, values: Sequence[float] | None) -> None:
        term: Any = self.env.command_manager.get_term(name)
        term.steer(0, values)
        self.steered.pop(name, None)
        if values is not None:
            self.steered[name] = tuple(values)

    def _write_targets(self, data: mujoco.MjData) -> None:
        """Write the controls of robots that the policy does not control."""
        for robot in self._loop.controls:
            if not robot.enabled or robot.owner != POLICY:
                ids = robot.actuators.ids
                self.env.sim.data.ctrl[0, ids] = torch.from_numpy(data.ctrl[ids]).float()

    def _check(self) -> None:
        """Raise an error if the last physics step failed."""
        failed = WorldStatus(int(self.env.sim.status[0])) & _FAILED
        if failed:
            names = ", ".join(str(bit.name).lower() for bit in WorldStatus if bit & failed)
            raise FaultError(
                f"the state diverged ({names}): reset the world, or restore a saved state."
            )

    def adopt_model(self, model: mujoco.MjModel) -> None:
        """Write what a command has changed in the lab's model to the environment at once.

        An episode that begins before the next control step then has it, too.
        """
        with torch.no_grad():
            self._models.take(model)

    def _import_state(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Write the lab's state to the environment, if it is not that of the last step."""
        mujoco.mj_getState(model, data, self._now, STATE)
        if np.array_equal(self._now, self._row, equal_nan=True):
            return
        sim = self.env.sim
        state = sim.get_state()
        state["state"].copy_(torch.from_numpy(self._now))
        sim.set_state(state)
        if not np.array_equal(self._essence(model, self._now), self._essence(model, self._row)):
            sim.forward()

    @staticmethod
    def _essence(model: mujoco.MjModel, row: np.ndarray) -> np.ndarray:
        """Return the part of a state that positions and velocities depend on."""
        kept = STATE & ~_INPUTS
        part = np.empty(mujoco.mj_stateSize(model, kept))
        mujoco.mj_extractState(model, row, STATE, part, kept)
        return part

    def _show(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Copy the environment's world to the lab's, and compute derived fields there."""
        self._loop.model_version += self._models.give(model)
        mujoco.mj_getState(self._reference, self._reference_data, self._row, STATE)
        mujoco.mj_setState(model, data, self._row, STATE)
        mujoco.mj_forward(model, data)
        mujoco.mj_setState(model, data, self._row, STATE)  # the solver's warm start, too

    def describe_task(self) -> dict[str, object]:
        """Return what stays the same about the task, as plain data; see the verb `read_task`."""
        env = self.env
        terms = {name: env.command_manager.get_term(name) for name in self._command_names}
        steered = {}
        for name, term in terms.items():
            if isinstance(term, Steerable):
                steered[name] = {label: list(bounds) for label, bounds in term.steering.items()}
        return {
            "differences": list(self.differences),
            "step_dt": env.step_dt,
            "decimation": env.cfg.decimation,
            "most_rewards": env.cfg.viewer.reward_bar_max_terms,
            "steered": steered,
            "motions": {
                name: term.num_frames for name, term in terms.items() if isinstance(term, Seekable)
            },
            "observations": shapes_of(env.single_observation_space),
            "num_actions": env.action_manager.total_action_dim,
            "terrain_cells": _terrain_cells(env),
            "own_widgets": [
                name for name, term in terms.items() if overrides(term, CommandTerm, *_WIDGETS)
            ],
        }

    def motion_frames(self) -> dict[str, int]:
        """Return the present frame of each motion that a command term plays, by its name."""
        terms = {name: self.env.command_manager.get_term(name) for name in self._command_names}
        return {
            name: term.frame_of(0) for name, term in terms.items() if isinstance(term, Seekable)
        }

    def debug_shapes(self) -> dict[str, object]:
        """Return the debug shapes of the task as arrays; see `pack_shapes`."""
        if self._shapes is None:
            model = self._loop.model
            scene = mujoco.MjvScene(model, MOST_SHAPES)
            self._shapes = MujocoNativeDebugVisualizer(scene, model, env_idx=0)
        self._shapes.clear()
        with self._loop.lock():
            self.env.update_visualizers(self._shapes)
        return pack_shapes(self._shapes.scn)

    def _ended_by(self) -> list[str]:
        terms = self.env.termination_manager.get_active_iterable_terms(0)
        return [name for name, (value,) in terms if value]

    def _report(self, total: float = 0.0) -> StepReport:
        env = self.env
        rewards = env.reward_manager.get_active_iterable_terms(0)
        metrics = env.metrics_manager.get_active_iterable_terms(0)
        commands = env.command_manager.get_active_iterable_terms(0)
        return StepReport(
            step=int(env.episode_length_buf[0]),
            rewards=_numbers(rewards),
            total=total,
            ended_by=tuple(self._ended_by()),
            episodes=self._episodes,
            last_end=self._last_end,
            metrics=_numbers(metrics),
            commands={name: tuple(values) for name, values in commands},
        )


def _numbers(terms: Iterable[tuple[str, Sequence[float]]]) -> dict[str, float]:
    """Return the first value of each term, by its name."""
    return {name: float(np.ravel(value)[0]) for name, value in terms}


def _terrain_cells(env: ManagerBasedRlEnv) -> dict[str, int]:
    """Return the number of `levels` and `columns` of generated terrain; empty on other ground."""
    terrain = env.scene.terrain
    if terrain is None or terrain.terrain_origins is None:
        return {}
    return dict(zip(("levels", "columns"), terrain.terrain_origins.shape[:2], strict=True))
