"""The places of mjlab's modules, names and tasks in this project, and remedies for missing ones.

A module or name at the same place below `manyworlds` needs no row.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from manyworlds.tasks.registry import LazyTask

_CONFIGS = (
    *("manipulation.config.yam", "tracking.config.g1"),
    *("velocity.config.g1", "velocity.config.go1"),
)
_ROBOT_CONSTANTS = {"i2rt_yam": "yam", "unitree_g1": "g1", "unitree_go1": "go1"}


@contextlib.contextmanager
def as_program() -> Iterator[None]:
    """Let commands read mjlab's forms of arguments, and start the present program again."""
    from manyworlds.cli.options import FRONTENDS, Frontend
    from manyworlds.compat.mjlab.command_line import plain_flags, present_program

    FRONTENDS.append(Frontend(plain_flags, present_program))
    try:
        yield
    finally:
        FRONTENDS.pop()


def run_command(name: str, arguments: Sequence[str] | None = None) -> None:
    """Run a `manyworlds` command; flags may have values.

    Args:
        name: the command.
        arguments: its arguments; None takes those of the process.

    Raises:
        SystemExit: the command failed.
    """
    from manyworlds.cli.main import main

    if arguments is None:
        arguments = sys.argv[1:]
    with as_program():
        code = main([name, *arguments])
    if code:
        raise SystemExit(code)


_FACADES = "manyworlds.compat.mjlab.facades.tasks"
_TERMS = "manyworlds.compat.mjlab.facades.envs.mdp"
_ROBOTS = ("manyworlds.compat.mjlab.robots", "manyworlds.asset_zoo.third_party")

MODULES: dict[str, str | tuple[str, ...]] = {
    **{
        f"mjlab.viewer.viser.{name}": f"manyworlds.viewer.browser.{name}"
        for name in ("reward_bar_panel", "term_plotter")
    },
    "mjlab.asset_zoo.robots": _ROBOTS,
    **{
        f"mjlab.asset_zoo.robots.{folder}.{robot}_constants": _ROBOTS
        for folder, robot in _ROBOT_CONSTANTS.items()
    },
    **{
        f"mjlab.envs.mdp.dr.{kind}": "manyworlds.envs.mdp.dr"
        for kind in (
            *("actuator", "body", "camera", "geom", "joint"),
            *("light", "material", "pair", "site", "tendon"),
        )
    },
    **{
        f"mjlab.tasks.{task}.mdp": (_TERMS, f"manyworlds.tasks.{task}.mdp", "manyworlds.envs.mdp")
        for task in ("manipulation", "tracking", "velocity")
    },
    **{
        f"mjlab.tasks.{robot}.{part}": f"{_FACADES}.{robot}"
        for robot in _CONFIGS
        for part in ("env_cfgs", "rl_cfg")
    },
    "mjlab.envs.mdp.dr._core": "manyworlds.envs.mdp.dr.field_draws",
    "mjlab.envs.mdp.dr._types": "manyworlds.envs.mdp.dr.distributions",
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
"""mjlab's modules to ours; the first that has a name provides it. A row holds for all
modules below it."""

_TERM_CLASSES = (
    "entity:Entity",
    "managers:CommandTerm",
    "managers:CommandTermCfg",
    "managers:RewardTermCfg",
    "managers:SceneEntityCfg",
    "sensor:BuiltinSensor",
    "sensor:CameraSensor",
    "sensor:ContactSensor",
    "sensor:RayCastSensor",
    "sensor:TerrainHeightSensor",
    "utils.debug_visualizer:DebugVisualizer",
    "utils.math:quat_from_euler_xyz",
    "utils.math:quat_mul",
    "utils.math:sample_uniform",
    "utils.math:subtract_frame_transforms",
    "validation.names:resolve_matching_names_values",
)
"""Names that mjlab's packages of terms show although other modules define them."""

_RUNNER = "manyworlds.rl.runner:OnPolicyRunner"
_MOTION_RUNNER = "manyworlds.tasks.tracking.rl.runner:MotionTrackingOnPolicyRunner"
_NAN_GUARD = "manyworlds.compat.mjlab.facades.utils.nan_guard:NanGuard"

NAMES: dict[str, object] = {
    "mjlab:MJLAB_SRC_PATH": Path(__file__).parents[2],
    "mjlab:TYRO_FLAGS": "manyworlds.compat.mjlab.command_line:TYRO_FLAGS",
    **{
        f"mjlab.asset_zoo.robots.{folder}.{robot}_constants:get_spec": (
            f"manyworlds.compat.mjlab.robots:get_{folder}_spec"
        )
        for folder, robot in _ROBOT_CONSTANTS.items()
    },
    **{
        f"mjlab.asset_zoo.robots.unitree_go1.go1_constants:{theirs}": (
            f"manyworlds.compat.mjlab.robots:{ours}"
        )
        for theirs, ours in {
            "FULL_COLLISION": "GO1_FULL_COLLISION",
            "INIT_STATE": "GO1_INIT_STATE",
        }.items()
    },
    "mjlab.asset_zoo.robots.unitree_g1.g1_constants:FULL_COLLISION": (
        "manyworlds.compat.mjlab.robots:G1_FULL_COLLISION"
    ),
    "mjlab.envs.mdp.events:sample_uniform": "manyworlds.utils.math:sample_uniform",
    "mjlab.tasks.registry:_REGISTRY": "manyworlds.compat.mjlab.registry:REGISTRY",
    **{
        f"mjlab.{place}.mdp:{ours.partition(':')[2]}": f"manyworlds.{ours}"
        for place in ("envs", "tasks.manipulation", "tasks.tracking", "tasks.velocity")
        for ours in _TERM_CLASSES
    },
    **{
        f"mjlab.{place}.mdp:NanGuard": _NAN_GUARD
        for place in ("envs", "tasks.manipulation", "tasks.tracking", "tasks.velocity")
    },
    **{
        f"mjlab.envs.mdp.dr:{name}": f"manyworlds.envs.mdp.dr.distributions:{name.upper()}"
        for name in ("abs", "add", "gaussian", "log_uniform", "scale", "uniform")
    },
    "mjlab.rl:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    "mjlab.sim.sim:VARIANT_DEPENDENT_FIELDS": "manyworlds.sim:VARIANT_DEPENDENT_FIELDS",
    "mjlab.sim.sim_data:TorchArray": "manyworlds.sim.torch_array:TorchArray",
    "mjlab.sim.sim_data:WarpBridge": "manyworlds.sim.views:WarpBridge",
    "mjlab.rl.runner:MjlabOnPolicyRunner": "manyworlds.rl.runner:OnPolicyRunner",
    **{
        f"mjlab.tasks.cartpole:{name}": f"{_FACADES}.cartpole.cartpole_env_cfg:{name}"
        for name in (
            *("cartpole_balance_env_cfg", "cartpole_ppo_runner_cfg"),
            "cartpole_swingup_env_cfg",
        )
    },
    "mjlab.tasks:import_packages": (
        "manyworlds.compat.mjlab.facades.utils.lab_api.tasks.importer:import_packages"
    ),
    **{
        f"mjlab.tasks.{place}:{name}OnPolicyRunner": runner
        for name, runner, places in (
            (
                "Manipulation",
                _RUNNER,
                ("manipulation.rl", "manipulation.rl.runner", "manipulation.config.yam"),
            ),
            ("MotionTracking", _MOTION_RUNNER, ("tracking.rl", "tracking.config.g1")),
            (
                "Velocity",
                _RUNNER,
                ("velocity.rl", "velocity.rl.runner", "velocity.config.g1", "velocity.config.go1"),
            ),
        )
        for place in places
    },
    **{
        f"mjlab.tasks.{place}:register_mjlab_task": "manyworlds.tasks.registry:register_task"
        for place in ("registry", "cartpole", *_CONFIGS)
    },
    "mjlab.scripts.demo:main": partial(run_command, "demo"),
    **{
        f"mjlab.scripts.{command}:{name}": f"manyworlds.compat.mjlab.commands.{command}:{name}"
        for command, names in (
            ("export_scene", ("ENTITY_ALIASES", "ExportSceneCfg", "export_scene", "main")),
            ("list_envs", ("list_environments", "main")),
            ("play", ("PlayConfig", "run_play")),
            ("train", ("TrainConfig", "launch_training")),
        )
        for name in names
    },
    "mjlab.scripts.play:main": partial(run_command, "play"),
    "mjlab.scripts.train:main": partial(run_command, "train"),
    "mjlab.scripts.nan_viz:main": partial(run_command, "replay-dump"),
    "mjlab.scripts.visualize_terrain:ROBOT_CFG_GETTERS": (
        "manyworlds.cli.terrain_view:ROBOT_CFG_GETTERS"
    ),
    "mjlab.scripts.visualize_terrain:main": partial(run_command, "terrain"),
    "mjlab.tasks.tracking.scripts.evaluate:EvaluateConfig": (
        "manyworlds.tasks.tracking.scripts.evaluate:EvaluateOptions"
    ),
    "mjlab.utils.wrappers:VideoRecorder": "manyworlds.viewer.video_recorder:VideoRecorder",
    "mjlab.utils.wrappers.video_recorder:VideoRecorder": (
        "manyworlds.viewer.video_recorder:VideoRecorder"
    ),
    **{
        f"mjlab.viewer:{name}": f"manyworlds.viewer.base:{name}"
        for name in ("EnvProtocol", "PolicyProtocol")
    },
    **{
        f"mjlab.viewer.{place}:{name}": f"manyworlds.viewer.model_sync:{name}"
        for place, names in {
            "native.viewer": ("VIEWER_INERTIAL_FIELDS", "VIEWER_MODEL_FIELDS"),
            "offscreen_renderer": ("VIEWER_MODEL_FIELDS",),
            "viser.scene": ("VIEWER_MODEL_FIELDS",),
        }.items()
        for name in names
    },
    # Another package, which `pip install mjviser` brings.
    **{
        f"mjlab.viewer.viser:{name}": f"mjviser.conversions:{name}"
        for name in (
            *("create_site_mesh", "get_geom_texture_id", "group_geoms_by_visual_compat"),
            *("merge_geoms", "merge_sites", "mujoco_mesh_to_trimesh"),
        )
    },
    "mjlab.viewer.viser:RewardBarPanel": (
        "manyworlds.viewer.browser.reward_bar_panel:RewardBarPanel"
    ),
    "mjlab.viewer.viser:ViserTermPlotter": (
        "manyworlds.viewer.browser.term_plotter:ViserTermPlotter"
    ),
}
"""mjlab's `module:name` to ours; what is not a string is the value itself."""

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
            _MOTION_RUNNER,
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

ABSENT: dict[str, str] = {
    "mjlab.actuator.builtin_group.BuiltinActuatorType": "groups form by themselves",
    "mjlab.asset_zoo.robots": (
        "bring the robot's MJCF file: EntityCfg(spec_fn=lambda: mujoco.MjSpec.from_file(path))"
    ),
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
    "mjlab.scripts.nan_viz": _COMMAND.format("replay-dump"),
    "mjlab.scripts.train.run_train": "call launch_training, which makes the folder of the run",
    "mjlab.scripts.visualize_terrain.PARAM_HINTS": _COMMAND.format("terrain --change"),
    "mjlab.sim.randomization.repeat_array_kernel": (
        "the nearest is manyworlds.sim.randomization.expand_model_fields"
    ),
    **{
        f"mjlab.viewer.viser.{name}": (
            "the nearest is manyworlds.viewer.browser.world_grid.WorldGrid"
        )
        for name in (
            *("MjlabViserScene", "ViserMujocoScene"),
            *("scene.MjlabViserScene", "scene.ViserMujocoScene"),
        )
    },
}
"""Remedies for the lack of a name, a module, or all that is below it; the reasons stand in
docs/coming_from_mjlab.md."""


def remedy(path: str) -> str:
    """Return the remedy for the lack of `mjlab.a.b`, or an empty string."""
    parts = path.split(".")
    prefixes = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((ABSENT[prefix] for prefix in prefixes if prefix in ABSENT), "")
