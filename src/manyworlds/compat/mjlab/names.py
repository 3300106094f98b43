"""The places of mjlab's modules, names and tasks in this project, and remedies for missing ones.

A module or name at the same place below `manyworlds` needs no row.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from manyworlds.tasks.registry import LazyTask


def run_command(name: str) -> None:
    """Run a `manyworlds` command with the arguments of the process.

    Raises:
        SystemExit: the command failed.
    """
    from manyworlds.cli.main import main

    if code := main([name, *sys.argv[1:]]):
        raise SystemExit(code)


_FACADES = "manyworlds.compat.mjlab.facades.tasks"

MODULES: dict[str, str] = {
    **{
        f"mjlab.tasks.{robot}.{part}": f"{_FACADES}.{robot}"
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
    "mjlab.entity.entity:EntityIndexing": "manyworlds.entity.indexing:EntityIndexing",
    "mjlab.rl:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.sim.sim_data:TorchArray": "manyworlds.sim.torch_array:TorchArray",
    "mjlab.rl.runner:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.tasks.manipulation.mdp.terminations:illegal_contact": (
        "manyworlds.envs.mdp.terminations:illegal_contact"
    ),
    "mjlab.tasks.manipulation.rl.runner:ManipulationOnPolicyRunner": (
        "manyworlds.rl.runner:OnPolicyRunner"
    ),
    "mjlab.tasks.velocity.mdp.rewards:self_collision_cost": (
        "manyworlds.envs.mdp.rewards:self_collision_cost"
    ),
    "mjlab.tasks.velocity.mdp.terminations:illegal_contact": (
        "manyworlds.envs.mdp.terminations:illegal_contact"
    ),
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
    "mjlab.utils.os:dump_yaml": "manyworlds.utils.config:dump_yaml",
    "mjlab.utils.wrappers:VideoRecorder": "manyworlds.viewer.video_recorder:VideoRecorder",
    "mjlab.utils.wrappers.video_recorder:VideoRecorder": (
        "manyworlds.viewer.video_recorder:VideoRecorder"
    ),
}
"""mjlab's `module:name` to ours; what is not a string is the value itself."""

_RUNNER = "manyworlds.rl.runner:OnPolicyRunner"
TASKS: dict[str, LazyTask] = {
    **{
        f"Mjlab-Cartpole-{task}": LazyTask(
            f"{_FACADES}.cartpole.cartpole_env_cfg",
            f"cartpole_{task.lower()}_env_cfg",
            "cartpole_ppo_runner_cfg",
        )
        for task in ("Balance", "Swingup")
    },
    **{
        f"Mjlab-Velocity-{ground}-Unitree-{robot}": LazyTask(
            f"{_FACADES}.velocity.config.{robot.lower()}",
            f"unitree_{robot.lower()}_{ground.lower()}_env_cfg",
            f"unitree_{robot.lower()}_ppo_runner_cfg",
            _RUNNER,
        )
        for ground in ("Flat", "Rough")
        for robot in ("Go1", "G1")
    },
    **{
        f"Mjlab-Tracking-Flat-Unitree-G1{suffix}": LazyTask(
            f"{_FACADES}.tracking.config.g1",
            f"unitree_g1_flat_tracking{suffix.lower().replace('-', '_')}_env_cfg",
            "unitree_g1_tracking_ppo_runner_cfg",
            "manyworlds.tasks.tracking.rl.runner:MotionTrackingOnPolicyRunner",
        )
        for suffix in ("", "-No-State-Estimation")
    },
    **{
        f"Mjlab-{task}": LazyTask(
            f"{_FACADES}.manipulation.config.yam",
            f"yam_{env}_env_cfg",
            f"yam_{learner}_ppo_runner_cfg",
            _RUNNER,
        )
        for task, env, learner in (
            ("Lift-Cube-Yam", "lift_cube", "lift_cube"),
            ("Lift-Cube-Yam-Rgb", "lift_cube_rgb", "lift_cube_vision"),
            ("Lift-Cube-Yam-Depth", "lift_cube_depth", "lift_cube_vision"),
            ("Multi-Cube-Seg-Yam", "multi_cube_seg", "multi_cube_seg"),
        )
    },
}
"""mjlab's tasks by id."""

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
