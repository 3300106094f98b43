"""Physics that a few CPU cores simulate quickly, for training; evaluation keeps the task's own."""

from __future__ import annotations

from collections.abc import Iterator

from manyworlds.envs import ManagerBasedRlEnvCfg
from manyworlds.sensor import ContactSensorCfg


def use_cheap_physics(cfg: ManagerBasedRlEnvCfg, iterations: int) -> None:
    """Solve contacts with few iterations, and halve the number of physics steps per control step.

    See `halve_physics_steps`. `docs/performance.md` lists what each change gains, and how far
    motions deviate from the task's own.

    Args:
        cfg: the environment, with an even decimation; it is modified.
        iterations: iterations of the projected Gauss-Seidel solver.

    Raises:
        ValueError: the decimation is odd.
    """
    halve_physics_steps(cfg)
    physics = cfg.sim.mujoco
    assert physics is not None
    physics.solver = "pgs"
    physics.iterations = iterations
    # A robot on the ground is one island: looking for islands changes nothing and takes time.
    skipped = ["island"]
    if cfg.scene.terrain is None or cfg.scene.terrain.terrain_type == "plane":
        # Few geoms are tested faster directly than through their bounding volumes.
        skipped.append("midphase")
    else:
        cfg.scene.terrain.on_world_body = True
    physics.disableflags = (*physics.disableflags, *skipped)


def halve_physics_steps(cfg: ManagerBasedRlEnvCfg) -> None:
    """Halve the number of physics steps per control step, and leave out sensors that no term names.

    The control period, the solver, the friction cones and the contacts stay the same. Histories of
    contact sensors, which count physics steps, have half as many; delays of actuators, which count
    them, too, are not changed.

    Args:
        cfg: the environment, with an even decimation; it is modified.

    Raises:
        ValueError: the decimation is odd.
    """
    physics = cfg.sim.mujoco
    assert physics is not None
    if cfg.decimation % 2:
        raise ValueError(
            "The settings for few CPU cores make half as many physics steps, for which decimation "
            f"must be even, got {cfg.decimation}: change it together with sim.mujoco.timestep, or "
            "train with --preset gpu."
        )
    physics.timestep = 2.0 * physics.timestep
    cfg.decimation = cfg.decimation // 2
    for sensor in cfg.scene.sensors:
        if isinstance(sensor, ContactSensorCfg):
            sensor.history_length = -(-sensor.history_length // 2)
    keep_named_sensors(cfg)


def keep_named_sensors(cfg: ManagerBasedRlEnvCfg) -> None:
    """Leave out the sensors of model files that no term names.

    Args:
        cfg: the environment; it is modified.
    """
    added = {name for sensor in cfg.scene.sensors for name in (sensor.name, sensor.prefixed_name)}
    cfg.scene.kept_sensors = tuple(sorted(set(_named_sensors(cfg)) - added))


def _named_sensors(cfg: ManagerBasedRlEnvCfg) -> Iterator[str]:
    """Yield the names of sensors among the parameters of all terms."""
    groups = [group.terms for group in cfg.observations.values() if group is not None]
    managers = (cfg.rewards, cfg.terminations, cfg.events, cfg.curriculum, cfg.metrics)
    for terms in (*groups, *managers):
        for term in filter(None, terms.values()):
            for key, value in term.params.items():
                if "sensor" not in key:
                    continue
                if isinstance(value, str):
                    yield value
                elif isinstance(value, tuple | list):
                    yield from value
