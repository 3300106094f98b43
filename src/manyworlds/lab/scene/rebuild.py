"""Rebuild of a world: elements of the same name keep their state."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.loop.controls import RobotControls
from manyworlds.lab.moments.recording import Recording, carry_values, state_columns
from manyworlds.lab.moments.states import SavedStates
from manyworlds.lab.robots.control import controls_of
from manyworlds.lab.world.model_facts import STATE, has_prefix

if TYPE_CHECKING:
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.task.env_stepper import EnvironmentStepper
    from manyworlds.lab.world.world import World


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    """Result of a rebuild."""

    error: str = ""
    """Reason why the new world does not compile and the old one continues; empty if it compiles."""
    kept: tuple[str, ...] = ()
    """Joints that kept their state."""
    fresh: tuple[str, ...] = ()
    """Joints that start in the initial state: new ones, and those of another type."""
    gone: tuple[str, ...] = ()
    """Joints that the new world does not have."""
    dropped_laws: tuple[str, ...] = ()
    """Robots whose controller does not fit them any more and was removed."""
    notes: tuple[str, ...] = ()
    """Sentences about what else did not continue: replays, holds, converted states."""

    def __bool__(self) -> bool:
        """Return True if the new world runs."""
        return not self.error


StateRow = tuple[Recording, np.ndarray]
"""Columns and values of a state."""


@dataclass(frozen=True, kw_only=True)
class Transition:
    """State that an edit of the world sets, besides what continues by name."""

    remembered: tuple[StateRow, ...] = ()
    """Columns and values of former states, for elements that the present world does not have."""
    placed: Mapping[tuple[str, str], np.ndarray] = field(default_factory=dict)
    """New values by part of the state, as `qpos`, and name of the element."""
    rename: Callable[[str], str] = str
    """Returns the new name of each element by its present one."""
    renamed_robots: Mapping[str, str] = field(default_factory=dict)
    """Present names of robots by their new ones."""

    def place(self, state: StateRow) -> None:
        """Write the new values into a state."""
        columns, row = state
        for (part, name), values in self.placed.items():
            if name in columns.index.get(part, {}):
                start, width = columns.index[part][name]
                row[start : start + width] = values


_PLAIN = Transition()


def read_state(model: mujoco.MjModel, data: mujoco.MjData) -> StateRow:
    """Return the present state, `mjSTATE_INTEGRATION`."""
    columns = state_columns(model)
    row = np.empty(columns.values.shape[1])
    mujoco.mj_getState(model, data, row, STATE)
    return columns, row


def keep_names(old: World, fresh: World) -> World:
    """Return a world whose robots have the names that they had before.

    Names that were given to the new world stay. Where they were inferred from the model, a robot of
    the same prefix keeps its name; if no prefix was found, all robots whose prefix the new model
    still has keep name and prefix. An empty world has no names to keep.
    """
    if fresh.robots != fresh.inferred or old.model.nbody == 1:
        return fresh
    names = {prefix: name for name, prefix in old.robots.items()}
    robots = {names.get(prefix, name): prefix for name, prefix in fresh.robots.items()}
    if list(fresh.robots.values()) == [""]:
        kept = {n: p for n, p in old.robots.items() if has_prefix(fresh.model, p)}
        robots = kept or robots
    if robots == fresh.robots or len(robots) < len(fresh.robots):
        return fresh
    of_prefix = {fresh.robots[name]: source for name, source in fresh.sources.items()}
    found = {name: of_prefix.get(p, of_prefix.get("")) for name, p in robots.items()}
    sources = {name: source for name, source in found.items() if source}
    return dataclasses.replace(fresh, robots=robots, sources=sources)


def carry_state(
    old: mujoco.MjModel,
    old_data: mujoco.MjData,
    new: mujoco.MjModel,
    data: mujoco.MjData,
    keep: bool = True,
    transition: Transition = _PLAIN,
) -> Rebuilt:
    """Copy the time, and the state of elements of the same name and type, to another world.

    Args:
        old: model of the present world.
        old_data: its data.
        new: model of the other world.
        data: its data in the initial state.
        keep: False to leave that state as it is.
        transition: what else is to be set.
    """
    columns, before = read_state(old, old_data)
    source = _renamed(columns, transition.rename)
    target, after = read_state(new, data)
    kept: tuple[str, ...] = ()
    if keep:
        for columns, row in transition.remembered:
            carry_values(row, columns, after, target)
        kept = carry_values(before, source, after, target)
        transition.place((target, after))
        mujoco.mj_setState(new, data, after, STATE)
        data.time = old_data.time
    mujoco.mj_forward(new, data)
    return Rebuilt(
        kept=kept,
        fresh=tuple(name for name in target.joint_types if name not in kept),
        gone=tuple(name for name in source.joint_types if name not in target.joint_types),
    )


def _renamed(columns: Recording, rename: Callable[[str], str]) -> Recording:
    """Return columns with the new names of their elements."""
    index = {}
    for part, elements in columns.index.items():
        index[part] = {rename(name): place for name, place in elements.items()}
    types = {rename(name): kind for name, kind in columns.joint_types.items()}
    return dataclasses.replace(columns, index=index, joint_types=types)


def carry_controls(
    old: RobotControls,
    fresh: RobotControls,
    model: mujoco.MjModel,
    renamed: Mapping[str, str] | None = None,
) -> tuple[RobotControls, dict[str, str]]:
    """Continue the control of robots of the same name: owners, targets and controllers.

    Returns:
        The controls of the new world, and the reasons why controllers do not continue, by robot.
    """
    desk = {}
    dropped = {}
    for robot in fresh:
        known = old.find((renamed or {}).get(robot.name, robot.name))
        if known is None:
            desk[robot.name] = robot
            continue
        desk[robot.name] = known
        known.name = robot.name
        reason = known.rebuild(model, robot.actuators, robot.neutral)
        if reason:
            dropped[robot.name] = reason
    return RobotControls(desk), dropped


class Replacement:
    """Replacement of a lab's world by another one, in which everything continues by name.

    Args:
        lab: the lab.
        world: the new world.
        stepper: environment that steps the new world, from its own state; None for plain MuJoCo.
        transition: state that an edit sets, besides what continues by name; None for nothing.
    """

    def __init__(
        self,
        lab: LiveLab,
        world: World,
        stepper: EnvironmentStepper | None = None,
        transition: Transition | None = None,
    ) -> None:
        self._lab = lab
        self._world = world
        self._stepper = stepper
        self._transition = transition or _PLAIN
        self._data = world.new_data()
        self._controls = controls_of(world, self._data)

    def renames(self, robot: str) -> bool:
        """Return True if a robot of the new world had another name before."""
        return robot in self._transition.renamed_robots

    def run(self) -> Rebuilt:
        """Replace the world between two steps; the old one stays if MuJoCo fails in the new one."""
        try:
            mujoco.mj_forward(self._world.model, self._world.new_data())
            # `PhysicsLoop.swap` raises the version of the model.
            return self._lab.loop.do(self.carry_out, edits_model=False)
        except mujoco.FatalError as error:
            return Rebuilt(error=f"MuJoCo fails in the new world: {' '.join(str(error).split())}.")

    def carry_out(self, model: mujoco.MjModel, old: mujoco.MjData) -> Rebuilt:
        """Replace the world; runs in the physics thread."""
        lab = self._lab
        world = self._world
        data = self._data
        states = SavedStates(lab.loop, world)
        states.adopt(lab.states, self._controls)
        notes = [f"'{name}' {s.converted}" for name, s in states.items() if s.converted]
        replay = lab.replay
        held = lab.keyframes.held
        if replay.is_active:
            notes.append(f"the replay of '{replay.session}' ended")
        replay.stop()
        for robot in held:
            lab.keyframes.stop_hold(robot)
        edit = self._transition
        result = carry_state(model, old, world.model, data, self._stepper is None, edit)
        desk, dropped = carry_controls(
            lab.controls, self._controls, world.model, edit.renamed_robots
        )
        lab.perturbation.close()
        lab.leave_environment()
        lab.loop.swap(world.model, data, desk, world.reset)
        lab.recorder.rebuild(world.model_hash)
        lab.bind_world(world, states)
        lab.replay.continue_settings(replay)
        if self._stepper is None:
            notes += [f"the controller of '{name}' ended: {why}" for name, why in dropped.items()]
            notes += lab.keyframes.hold_again(held)
        else:
            self._stepper.start(lab.loop)
            lab.environment = self._stepper
            dropped = {}
        lab.rebuild_notes = tuple(notes)
        return dataclasses.replace(result, dropped_laws=tuple(dropped), notes=lab.rebuild_notes)
