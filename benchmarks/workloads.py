"""Table of the workloads; each measures a ratio of two programs in turn, within one process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import (
    bucket_workloads,
    convert_workloads,
    edit_workloads,
    entry_workloads,
    env_workloads,
    lab_workloads,
    lever_workloads,
    network_workloads,
    scene_workloads,
    sim_workloads,
    variant_workloads,
    viewer_workloads,
)
from benchmarks.measuring import Figures, cartpole, go1

_IMAGE_TASKS = (
    "Lift-Cube-Arm-Depth",
    "Lift-Cube-Arm-Rgb",
    "Lift-Cube-Yam-Depth",
    "Lift-Cube-Yam-Rgb",
    "Multi-Cube-Seg-Arm",
    "Multi-Cube-Seg-Yam",
)
SLOW_TASKS = (
    *_IMAGE_TASKS,
    "Tracking-Flat-G1",
    "Tracking-Flat-G1-No-State-Estimation",
    "Tracking-Flat-Humanoid-No-State-Estimation",
    "Velocity-Rough-G1",
    "Velocity-Rough-Humanoid",
)
"""Tasks that were not trained to their end on a CPU; their speed is measured instead."""


def _sizes(task: str) -> str:
    return "in 64 worlds" if task in _IMAGE_TASKS else "with the settings for few CPU cores"


# Name: description, smallest sufficient ratio, and function that measures it in a number of
# seconds.
WORKLOADS: dict[str, tuple[str, float | None, Callable[[float], Figures | None]]] = {
    "physics-go1-4": (
        "Go1, 1024 worlds, 4 substeps a call / mujoco.rollout",
        0.95,
        lambda seconds: sim_workloads.physics(4, False, seconds),
    ),
    "physics-go1-1": (
        "Go1, 1024 worlds, 1 substep a call / mujoco.rollout",
        0.90,
        lambda seconds: sim_workloads.physics(1, False, seconds),
    ),
    "physics-go1-4-refresh": (
        "Go1, 1024 worlds, 4 substeps and refreshed kinematics / mujoco.rollout",
        0.85,
        lambda seconds: sim_workloads.physics(4, True, seconds),
    ),
    "physics-go1-randomised": (
        "Go1, 1024 worlds, 12 model fields per world, 4 substeps a call / mujoco.rollout",
        0.90,
        lambda seconds: sim_workloads.physics(4, False, seconds, sim_workloads.RANDOMISED),
    ),
    "reset-go1": (
        "Go1, 4096 worlds, step / step and reset of 1 % of the worlds",
        0.97,
        sim_workloads.resets,
    ),
    "dr-reset-go1": (
        "Go1, 4096 worlds, control step / control step and randomized reset of 10 % of the worlds",
        0.80,
        scene_workloads.randomized_resets,
    ),
    "recorder-go1": (
        "Go1, 1024 worlds, step without / with the flight recorder",
        0.97,
        lambda seconds: sim_workloads.recorder(go1(), 1024, 1, seconds),
    ),
    "recorder-cartpole": (
        "cartpole, 1024 worlds, step without / with the flight recorder",
        0.97,
        lambda seconds: sim_workloads.recorder(cartpole(), 1024, 1, seconds),
    ),
    "memory-go1": (
        "Go1, memory of one MjData / of one more world",
        None,
        lambda seconds: sim_workloads.memory(),
    ),
    "actuators-go1": (
        "Go1 with 12 ideal PD joints, 1024 worlds, physics / physics and actuators",
        0.92,
        scene_workloads.actuators,
    ),
    "height-scan-go1": (
        "Go1, 1024 worlds, 17 x 11 heights: mujoco.batch's rays / the sensor",
        4.0,
        scene_workloads.height_scan,
    ),
    "page-go1": (
        "Go1, 1024 worlds in the browser, 30 pictures a second: time there is / CPU time needed",
        2.0,
        viewer_workloads.scene_update,
    ),
    "train-view-go1": (
        "Go1, 256 worlds: share of the cores' time that the page, with a client, leaves training",
        0.99,
        viewer_workloads.training_view,
    ),
    "enter-training": (
        "Quadrupeds that train on all cores: share of the cores that an entered world leaves",
        None,
        entry_workloads.entry,
    ),
    "remember-worlds": (
        "1024 quadrupeds, control steps without / with the memory of the last 10 s",
        None,
        entry_workloads.memory,
    ),
    "lab-real-time": (
        "G1 in the lab at 500 Hz, 2 cores, a page and a client: simulated / real time",
        1.0,
        lab_workloads.real_time,
    ),
    "lab-direct-page": (
        "G1 in the lab in direct mode, 2 cores: steps without / with a page and a client",
        0.95,
        lab_workloads.direct_steps,
    ),
    "lab-publish": (
        "40 joints in direct mode: step without / with a server and a reader of all states",
        0.9,
        network_workloads.publish_cost,
    ),
    "lab-round-trip": (
        "40 joints: 1 ms / p99 of a direct step over a socket beyond the step itself",
        1.0,
        network_workloads.round_trip,
    ),
    "lab-network": (
        "G1 at 500 Hz with a driver, 3 observers, page and 640 x 480 stream: simulated / real time",
        0.98,
        network_workloads.loaded_real_time,
    ),
    "lab-edit": (
        "Humanoid in the lab, 1, 10 and 100 boxes added in one edit: 300 ms / longest pause of 100",
        1.0,
        edit_workloads.edit_pauses,
    ),
    "lab-cameras": (
        "G1 in the lab at 500 Hz, 2 cores, a stream of 640 x 480 colors: simulated / real time",
        0.98,
        lab_workloads.camera_frames,
    ),
    "lab-image-recording": (
        "G1 in the lab at 500 Hz, 2 cores, recorded with 640 x 480 images: simulated / real time",
        0.98,
        lab_workloads.image_recording,
    ),
    "quick-convert": (
        "A mesh of 51,410 triangles to a prop with convex pieces: CPU time first / from the cache",
        None,
        convert_workloads.quick_convert,
    ),
    "height-field": (
        "A mesh sampled at 512 x 512 points by rays: CPU time first / from the cache",
        None,
        convert_workloads.height_field,
    ),
    "variants-step": (
        "1024 worlds, 4 substeps: one mesh as one variant / 64 copies of it as 64 variants",
        0.97,
        variant_workloads.step,
    ),
    **{
        f"variants-build-{count}": (
            f"{count} variants: merged model and each variant compiled in sequence / the scene",
            1.05,
            partial(variant_workloads.construction, count),
        )
        for count in (100, 1000)
    },
    "variants-memory": (
        "64 variants: a compiled model / the rows of one world",
        None,
        variant_workloads.memory,
    ),
    **{
        name: (
            f"{task}, {num_envs} worlds, env.step / mujoco.rollout",
            goal,
            partial(env_workloads.env, task, num_envs),
        )
        for name, task, num_envs, goal in (
            ("env-cartpole-1024", "Cartpole-Swingup", 1024, 0.65),
            ("env-cartpole-64", "Cartpole-Swingup", 64, None),
            ("env-go1-1024", "Velocity-Flat-Go1", 1024, 0.75),
            ("env-go1-64", "Velocity-Flat-Go1", 64, 0.50),
            ("env-g1", "Velocity-Flat-G1", 1024, 0.80),
        )
    },
    **{
        f"buckets-{count}x{num_envs}{suffix}": (
            f"{count} generated robots, {num_envs} worlds each{how} / as many of one of them",
            goal,
            partial(bucket_workloads.buckets, count, num_envs, not suffix),
        )
        for count, num_envs, suffix, how, goal in (
            (16, 64, "", "", 0.85),
            (16, 64, "-apart", ", a model each", None),
            (256, 4, "", "", 0.5),
        )
    },
    "rays-rough-go1": (
        "Velocity-Rough-Go1, 1024 worlds, env.step without the time for casting rays / env.step",
        0.90,
        partial(env_workloads.rays, "Velocity-Rough-Go1", 1024),
    ),
    "train-cartpole": (
        "cartpole PPO, 1024 worlds, collecting / whole iteration",
        None,
        lambda seconds: env_workloads.training(
            "Cartpole-Swingup", (64, 64), max(5, int(seconds * 2))
        ),
    ),
    **{
        f"train-go1-{widths[0]}": (
            f"Go1 PPO, 1024 worlds, networks {widths}, collecting / whole iteration",
            None,
            # An iteration takes about five seconds.
            lambda seconds, widths=widths: env_workloads.training(
                "Velocity-Flat-Go1", widths, max(4, 2 + int(seconds / 5))
            ),
        )
        for widths in ((128, 128, 128), (512, 256, 128))
    },
    "train-cpu-go1": (
        "Go1 PPO with the settings for few CPU cores, collecting / whole iteration",
        None,
        lambda seconds: env_workloads.cpu_training("Velocity-Flat-Go1", max(4, int(seconds))),
    ),
    **{
        f"train-cpu-{task.lower()}": (
            f"{task}, PPO {_sizes(task)}, collecting / whole iteration",
            None,
            lambda seconds, task=task: env_workloads.cpu_training(task, max(4, int(seconds / 2))),
        )
        for task in SLOW_TASKS
    },
    **{
        f"lever-{name}-{robot.lower()}": (
            f"{robot}, physics of a control step for few CPU cores: {what}",
            # A lever is kept only if it saves one part in twenty.
            None if name == "all" else 1.05,
            partial(
                lever_workloads.lever,
                f"Velocity-{'Rough' if name in ('terrain', 'hips') else 'Flat'}-{robot}",
                undo,
            ),
        )
        for robot in ("Go1", "G1")
        for name, (what, undo) in lever_workloads.LEVERS.items()
        # The same in the task and in its settings for few cores.
        if (robot, name) not in (("G1", "contacts"), ("G1", "hips"))
    },
    "start-up": (
        "bare python / import manyworlds, as whole processes",
        None,
        lambda seconds: env_workloads.start_up(max(3, int(seconds / 2))),
    ),
}
