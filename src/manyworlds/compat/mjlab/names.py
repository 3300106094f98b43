"""The places of mjlab's modules, names and tasks in this project, and remedies for missing ones.

A module or name at the same place below `manyworlds` needs no row.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal


def run_command(name: str) -> None:
    """Run a `manyworlds` command with the arguments of the process.

    Raises:
        SystemExit: the command failed.
    """
    from manyworlds.cli.main import main

    if code := main([name, *sys.argv[1:]]):
        raise SystemExit(code)


MODULES: dict[str, str] = {
    **{
        f"mjlab.tasks.{robot}.{part}": f"manyworlds.tasks.{robot}"
        for robot in (
            "manipulation.config.yam",
            "tracking.config.g1",
            "velocity.config.g1",
            "velocity.config.go1",
        )
        for part in ("env_cfgs", "rl_cfg")
    },
    "mjlab.utils.actuator": "manyworlds.spec.transmissions",
    "mjlab.utils.buffers": "manyworlds.signals",
    "mjlab.utils.lab_api.math": "manyworlds.utils.math",
    "mjlab.utils.mujoco": "manyworlds.spec.elements",
    "mjlab.utils.noise": "manyworlds.signals",
    "mjlab.utils.os": "manyworlds.utils.files",
    "mjlab.utils.random": "manyworlds.utils.seeding",
    "mjlab.utils.spec": "manyworlds.spec.edits",
    "mjlab.utils.spec_config": "manyworlds.spec.config",
    "mjlab.utils.string": "manyworlds.validation.names",
    "mjlab.utils.torch": "manyworlds.utils.devices",
    "mjlab.utils.xml": "manyworlds.spec.mjcf",
}
"""mjlab's modules to ours; a row holds for all modules below it."""

NAMES: dict[str, Any] = {
    "mjlab:MJLAB_SRC_PATH": Path(__file__).parents[2],
    **{
        f"mjlab.asset_zoo.robots:{name}": f"manyworlds.asset_zoo.third_party:{name}"
        for robot in ("g1", "go1", "yam")
        for name in (f"get_{robot}_robot_cfg", f"{robot.upper()}_ACTION_SCALE")
    },
    "mjlab.rl:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.sim.sim_data:TorchArray": "manyworlds.sim.torch_array:TorchArray",
    "mjlab.rl.runner:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.tasks.manipulation.mdp.terminations:illegal_contact": (
        "manyworlds.envs.mdp.terminations:illegal_contact"
    ),
    "mjlab.tasks.manipulation.rl.runner:ManipulationOnPolicyRunner": (
        "manyworlds.rl.runner:OnPolicyRunner"
    ),
    "mjlab.tasks.manipulation.config.yam.env_cfgs:get_cube_spec": (
        "manyworlds.tasks.manipulation.lift_cube_env_cfg:get_cube_spec"
    ),
    "mjlab.tasks.velocity.mdp.rewards:self_collision_cost": (
        "manyworlds.envs.mdp.rewards:self_collision_cost"
    ),
    "mjlab.tasks.velocity.mdp.terminations:illegal_contact": (
        "manyworlds.envs.mdp.terminations:illegal_contact"
    ),
    "mjlab.tasks.velocity.config.go1.env_cfgs:TerrainType": Literal["rough", "obstacles"],
    "mjlab.tasks.velocity.rl.runner:VelocityOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.scripts.demo:main": partial(run_command, "demo"),
    "mjlab.scripts.list_envs:main": partial(run_command, "list"),
    "mjlab.scripts.nan_viz:main": partial(run_command, "replay-dump"),
    "mjlab.scripts.play:main": partial(run_command, "play"),
    "mjlab.scripts.train:main": partial(run_command, "train"),
    "mjlab.scripts.visualize_terrain:ROBOT_CFG_GETTERS": (
        "manyworlds.cli.terrain_view:ROBOT_CFG_GETTERS"
    ),
    "mjlab.scripts.visualize_terrain:main": partial(run_command, "terrain"),
    "mjlab.tasks.tracking.scripts.evaluate:EvaluateConfig": (
        "manyworlds.tasks.tracking.scripts.evaluate:EvaluateOptions"
    ),
    "mjlab.tasks.registry:register_mjlab_task": "manyworlds.tasks.registry:register_task",
    "mjlab.utils.wrappers:VideoRecorder": "manyworlds.viewer.video_recorder:VideoRecorder",
    "mjlab.utils.wrappers.video_recorder:VideoRecorder": (
        "manyworlds.viewer.video_recorder:VideoRecorder"
    ),
}
"""mjlab's `module:name` to ours; what is not a string is the value itself."""

_ROBOTS = {"Unitree-Go1": "Go1", "Unitree-G1": "G1"}
TASKS: dict[str, str] = {
    **{f"Mjlab-Cartpole-{task}": f"Cartpole-{task}" for task in ("Balance", "Swingup")},
    **{
        f"Mjlab-Velocity-{ground}-{theirs}": f"Velocity-{ground}-{ours}"
        for ground in ("Flat", "Rough")
        for theirs, ours in _ROBOTS.items()
    },
    **{
        f"Mjlab-Tracking-Flat-Unitree-G1{suffix}": f"Tracking-Flat-G1{suffix}"
        for suffix in ("", "-No-State-Estimation")
    },
    **{f"Mjlab-Lift-Cube-Yam{seen}": f"Lift-Cube-Yam{seen}" for seen in ("", "-Rgb", "-Depth")},
    "Mjlab-Multi-Cube-Seg-Yam": "Multi-Cube-Seg-Yam",
}
"""mjlab's task ids to ours."""

_COMMAND = "the nearest is the command `manyworlds {}`"
_VISER_SCENE = "the nearest is manyworlds.viewer.browser.world_grid.WorldGrid"

ABSENT: dict[str, str] = {
    "mjlab.TYRO_FLAGS": "give `tyro.cli` what you want of `tyro.conf`",
    "mjlab.actuator.builtin_group.BuiltinActuatorType": "groups form by themselves",
    "mjlab.entity.variants.GeomSignature": "geoms may differ: see docs/variants.md",
    "mjlab.entity.variants.MeshVariantResult": (
        "the nearest are Simulation.mj_model and world_to_variant"
    ),
    "mjlab.entity.variants.build_variant_model": (
        "the nearest is Simulation(spec=..., variant_info=scene.collect_variant_info())"
    ),
    "mjlab.scripts._cli": _COMMAND.format("--help"),
    "mjlab.scripts.csv_to_npz": _COMMAND.format("motion convert"),
    "mjlab.scripts.gcs": "nothing is downloaded",
    "mjlab.scripts.list_envs": _COMMAND.format("list"),
    "mjlab.scripts.export_scene": "the nearest is manyworlds.scene.Scene.write",
    "mjlab.scripts.nan_viz": _COMMAND.format("replay-dump"),
    "mjlab.scripts.play": _COMMAND.format("play"),
    "mjlab.scripts.train": "the nearest is manyworlds.rl.training.train",
    "mjlab.sim.randomization.repeat_array_kernel": (
        "the nearest is manyworlds.sim.randomization.expand_model_fields"
    ),
    "mjlab.scripts.visualize_terrain.PARAM_HINTS": _COMMAND.format("terrain --change"),
    "mjlab.utils.lab_api.tasks": (
        "import your task modules in your package's __init__, or name them with `--load`"
    ),
    "mjlab.utils.logging": "use the standard library's logging, or rich",
    "mjlab.utils.nan_guard.NanGuard": (
        "the nearest are SimulationCfg.nan_guard, Simulation.status and `manyworlds replay-dump`"
    ),
    "mjlab.viewer.viser.ViserMujocoScene": _VISER_SCENE,
    "mjlab.viewer.viser.scene.MjlabViserScene": _VISER_SCENE,
    "mjlab.asset_zoo.robots": (
        "bring the robot's MJCF file: EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(path))"
    ),
}
"""Remedies for the lack of a name, a module, or all that is below it."""


def remedy(path: str) -> str:
    """Return the remedy for the lack of `mjlab.a.b`, or an empty string."""
    parts = path.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((ABSENT[prefix] for prefix in prefixes if prefix in ABSENT), "")
