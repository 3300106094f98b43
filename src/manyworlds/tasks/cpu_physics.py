"""Physics that a few CPU cores simulate quickly, for training; evaluation keeps the task's own."""

from __future__ import annotations

from manyworlds.envs import ManagerBasedRlEnvCfg


def use_cheap_physics(cfg: ManagerBasedRlEnvCfg, iterations: int) -> None:
    """Solve contacts with few iterations, and halve the number of physics steps per control step.

    The control period, the friction cones and the contacts stay the same. `docs/performance.md`
    lists what each change gains, and how far motions deviate from the task's own.

    Args:
        cfg: the environment, with an even decimation; it is modified.
        iterations: iterations of the projected Gauss-Seidel solver.

    Raises:
        ValueError: the decimation is odd.
    """
    physics = cfg.sim.mujoco
    assert physics is not None
    if cfg.decimation % 2:
        raise ValueError(
            f"decimation must be even for half as many physics steps, got {cfg.decimation}: change "
            "it together with sim.mujoco.timestep, so that the control period stays the same."
        )
    physics.timestep, cfg.decimation = 2.0 * physics.timestep, cfg.decimation // 2
    physics.solver, physics.iterations = "pgs", iterations
    # A robot on the ground is one island: looking for islands changes nothing and takes time.
    skipped = ["island"]
    if cfg.scene.terrain is None or cfg.scene.terrain.terrain_type == "plane":
        # Few geoms are tested faster directly than through their bounding volumes.
        skipped.append("midphase")
    physics.disableflags = (*physics.disableflags, *skipped)
