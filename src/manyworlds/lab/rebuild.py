"""Rebuild of a world: elements of the same name keep their state."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from manyworlds.lab.control import RobotControls
from manyworlds.lab.model_facts import STATE, has_prefix
from manyworlds.lab.recording import carry_values, state_columns
from manyworlds.lab.states import SavedStates

if TYPE_CHECKING:
    from manyworlds.lab.env_driver import EnvironmentDriver
    from manyworlds.lab.lab import LiveLab
    from manyworlds.lab.world import World


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
) -> Rebuilt:
    """Copy the time, and the state of elements of the same name and type, to another world.

    Args:
        old: model of the present world.
        old_data: its data.
        new: model of the other world.
        data: its data in the initial state.
        keep: False to leave that state as it is.
    """
    source, target = state_columns(old), state_columns(new)
    before, after = (np.empty(columns.values.shape[1]) for columns in (source, target))
    mujoco.mj_getState(old, old_data, before, STATE)
    mujoco.mj_getState(new, data, after, STATE)
    kept: tuple[str, ...] = ()
    if keep:
        kept = carry_values(before, source, after, target)
        mujoco.mj_setState(new, data, after, STATE)
        data.time = old_data.time
    mujoco.mj_forward(new, data)
    return Rebuilt(
        kept=kept,
        fresh=tuple(name for name in target.joint_types if name not in kept),
        gone=tuple(name for name in source.joint_types if name not in target.joint_types),
    )


def carry_controls(
    old: RobotControls, fresh: RobotControls, model: mujoco.MjModel
) -> tuple[RobotControls, dict[str, str]]:
    """Continue the control of robots of the same name: owners, targets and controllers.

    Returns:
        The controls of the new world, and the reasons why controllers do not continue, by robot.
    """
    desk, dropped = {}, {}
    for robot in fresh:
        known = old.find(robot.name)
        if known is None:
            desk[robot.name] = robot
            continue
        desk[robot.name] = known
        if reason := known.rebuild(model, robot.actuators, robot.neutral):
            dropped[robot.name] = reason
    return RobotControls(desk), dropped


class Replacement:
    """Replacement of a lab's world by another one, in which everything continues by name.

    Args:
        lab: the lab.
        world: the new world.
        driver: environment that drives the new world, from its own state; None for plain MuJoCo.
    """

    def __init__(self, lab: LiveLab, world: World, driver: EnvironmentDriver | None = None) -> None:
        self._lab, self._world, self._driver = lab, world, driver
        self._data = world.new_data()
        self._controls = world.controls(self._data)

    def carry_out(self, model: mujoco.MjModel, old: mujoco.MjData) -> Rebuilt:
        """Replace the world; runs in the physics thread."""
        lab, world, data = self._lab, self._world, self._data
        states = SavedStates(lab.loop, world)
        states.adopt(lab.states, self._controls)
        notes = [f"'{name}' {s.converted}" for name, s in states.items() if s.converted]
        replay, held = lab.replay, lab.keyframes.held
        if replay.is_active:
            notes.append(f"the replay of '{replay.session}' ended")
        replay.stop()
        for robot in held:
            lab.keyframes.stop_hold(robot)
        result = carry_state(model, old, world.model, data, keep=self._driver is None)
        desk, dropped = carry_controls(lab.controls, self._controls, world.model)
        lab.perturbation.close()
        lab.leave_environment()
        lab.loop.swap(world.model, data, desk, world.reset)
        lab.recorder.rebuild(world.model_hash)
        lab.bind_world(world, states)
        lab.replay.continue_settings(replay)
        if self._driver is None:
            notes += [f"the controller of '{name}' ended: {why}" for name, why in dropped.items()]
            notes += lab.keyframes.hold_again(held)
        else:
            self._driver.start(lab.loop)
            lab.environment, dropped = self._driver, {}
        lab.rebuild_notes = tuple(notes)
        return dataclasses.replace(result, dropped_laws=tuple(dropped), notes=lab.rebuild_notes)
