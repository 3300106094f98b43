"""`manyworlds play [TASK]`: watch a policy in the browser, in a window, or as a video."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import arg

from manyworlds.cli.buckets import one_bucket
from manyworlds.cli.errors import UsageError
from manyworlds.cli.options import (
    Host,
    PolicyOptions,
    Port,
    WandbCheckpointName,
    WandbRunPath,
    WebOrigins,
    parse_task_command,
)
from manyworlds.cli.runs import (
    FoundRun,
    downloaded_checkpoint,
    find_run,
    find_task,
    tell_differences,
)
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import mujoco
    import numpy as np

    from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
    from manyworlds.utils.viewer_config import ViewerConfig
    from manyworlds.viewer.base import PolicyProtocol
    from manyworlds.viewer.viser.checkpoints import CheckpointManager

ONNX = "--onnx"


@dataclass(kw_only=True)
class PlayOptions(PolicyOptions):
    """Watch a policy in many worlds.

    Without TASK, the task is that of the run; instead of TASK, a run folder or a checkpoint may be
    named. Options `--env...` change the environment of the task: see `manyworlds play TASK --help`.
    """

    agent: Literal["trained", "random", "zero"] = "trained"
    """Policy: trained, random actions, or zero actions."""
    latest: bool = False
    """Use the newest run of the task, as without `--checkpoint`."""
    checkpoint: Annotated[Path | None, arg(aliases=["--checkpoint-file"])] = None
    """File, run folder, or name of a run; None uses the newest, and later ones as they appear."""
    wandb_run_path: WandbRunPath = None
    wandb_checkpoint_name: WandbCheckpointName = None
    motion_file: Path | None = None
    """NPZ file of the motion to track, for tracking tasks."""
    no_terminations: tyro.conf.FlagCreatePairsOff[bool] = False
    """Never end an episode."""
    viewer: Literal["auto", "native", "viser"] = "auto"
    """native: MuJoCo's window; viser: a web page of all worlds; auto: viser."""
    video: bool = False
    """Record a video without a window, then exit."""
    video_length: int = 200
    """Length of the video [control steps]."""
    video_height: int | None = None
    """Height of the video [pixels]; None uses the task's, or 480 if that is less."""
    video_width: int | None = None
    """Width of the video [pixels]; None uses the task's, or 640 if that is less."""
    camera: int | str | None = None
    """Name or number of the model's camera for the video; None looks at the robot of the task."""
    host: Host = "127.0.0.1"
    port: Port = 8080
    web_origin: WebOrigins = ()
    steps: int | None = None
    """Number of control steps to run; None runs until Ctrl-C."""
    onnx: Path | None = None
    """Run an exported policy in plain MuJoCo; see `manyworlds play --onnx FILE --help`."""


def main(argv: list[str]) -> int:
    """Run `manyworlds play`."""
    if any(word.partition("=")[0] == ONNX for word in argv):
        from manyworlds.cli import play_onnx

        return play_onnx.main(argv)
    options, words = parse_task_command(PlayOptions, argv, "play")
    run(find_task(options, "play"), options, words)
    return 0


def run(task: str, options: PlayOptions, words: Sequence[str] = ()) -> None:
    """Find the policy, build the environment, and show or record them.

    Args:
        task: name of the task.
        options: the options.
        words: the arguments that change fields of the environment.
    """
    from manyworlds.cli.task_fields import EnvConfig, parse_fields, take_num_envs
    from manyworlds.tasks import load_env_cfg
    from manyworlds.tasks.run_configs import play_env_cfg

    config = EnvConfig(env=load_env_cfg(task, play=True))
    config = parse_fields(config, words, f"play {task}", options)
    if options.latest and options.checkpoint is not None:
        raise UsageError("Give either --latest or --checkpoint, not both.")
    found = None
    if options.agent == "trained":
        require_extra("rsl_rl", "train")
        if options.wandb_run_path is None:
            found = find_run(options.checkpoint, options.log_root, task)
        else:
            found = downloaded_checkpoint(options)
        print(f"policy: {found.need_checkpoint()}")
        tell_differences(found.folder, task, from_file=options.from_file)
        config.env = play_env_cfg(task, found.folder, from_file=options.from_file)
        config = parse_fields(config, words, f"play {task}", options)
    take_num_envs(config.env, options.num_envs)
    names = tuple(config.env.scene.buckets)
    while True:
        env_cfg = one_bucket(copy.deepcopy(config.env), options.bucket)
        if names and options.bucket is None:
            options.bucket = names[0]
        _change(env_cfg, options)
        chosen = _show(task, options, env_cfg, found, names)
        if chosen is None:
            return
        options.bucket = chosen


def _show(
    task: str,
    options: PlayOptions,
    env_cfg: ManagerBasedRlEnvCfg,
    found: FoundRun | None,
    buckets: Sequence[str] = (),
) -> str | None:
    """Show the policy of a checkpoint, or an untrained one, in the viewer of the options.

    Returns:
        The bucket that was chosen on the page to be shown next; None to end.
    """
    from manyworlds.cli.policies import UntrainedPolicy, load_run_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.viewer.viser.checkpoints import checkpoints_of

    env = ManagerBasedRlEnv(env_cfg, device=options.device)
    trained = None
    root = options.log_root
    if found is None:
        policy = UntrainedPolicy(env, options.agent)
    else:
        trained = found.folder
        policy = load_run_policy(env, task, trained, found.need_checkpoint())
    if trained is not None:
        root = trained.path
    if options.video:
        stem = root / "videos" / "play" / task
        path = film(env, policy, stem, options.video_length, options.camera)
        print(f"video: {path}")
        return None
    if options.viewer in ("auto", "viser"):
        checkpoints = None
        if found is not None and trained is not None:
            checkpoints = checkpoints_of(
                trained,
                found.need_checkpoint(),
                lambda path: load_run_policy(env, task, trained, path),
                follow=options.checkpoint is None,
            )
        return watch(
            env,
            policy,
            host=options.host,
            port=options.port,
            web_origins=options.web_origin,
            steps=options.steps,
            checkpoints=checkpoints,
            buckets=buckets,
            bucket=options.bucket or "",
        )
    watch_in_window(env, policy, steps=options.steps)
    return None


def _change(env: ManagerBasedRlEnvCfg, options: PlayOptions) -> None:
    """Change an environment by the options that have no `--env` prefix.

    Raises:
        ValueError: a motion is given, and the task tracks none.
    """
    if options.no_terminations:
        env.terminations = {}
    if options.motion_file is not None:
        commands: list[Any] = [*env.commands.values()]
        tracking = [term for term in commands if hasattr(term, "motion_file")]
        if not tracking:
            raise ValueError(
                "--motion-file is given, but this task tracks no motion: leave it out."
            )
        for term in tracking:
            term.motion_file = str(options.motion_file)
    enlarge(env.viewer)
    env.viewer.height = options.video_height or env.viewer.height
    env.viewer.width = options.video_width or env.viewer.width


def enlarge(viewer: ViewerConfig) -> None:
    """Make the images of a task at least as large as films are: 640 x 480 pixels."""
    viewer.width = max(viewer.width, 640)
    viewer.height = max(viewer.height, 480)


def film(
    env: ManagerBasedRlEnv,
    policy: PolicyProtocol,
    path_stem: Path,
    steps: int,
    camera: int | str | None = None,
) -> Path:
    """Record a video of the policy without a window; return its path."""
    import torch

    from manyworlds.utils.devices import torch_threads
    from manyworlds.viewer import attach_renderer, write_video

    if steps < 1:
        raise ValueError(f"--video-length must be at least 1 control step, got {steps}.")
    env.render_mode = "rgb_array"
    attach_renderer(env, camera=_camera(camera, env.sim.mj_model))

    def frames() -> Iterator[np.ndarray]:
        obs = env.get_observations()
        for _ in range(steps):
            with torch.no_grad():
                obs = env.step(policy(obs))[0]
            frame = env.render()
            assert frame is not None
            yield frame

    path_stem.parent.mkdir(parents=True, exist_ok=True)
    with torch_threads(1):
        return write_video(path_stem, frames(), 1.0 / env.step_dt)


def _camera(camera: int | str | None, model: mujoco.MjModel) -> int | str | None:
    """Return the number of a camera for its number as text; check its name."""
    if not isinstance(camera, str):
        return camera
    if camera.lstrip("-").isdigit():
        return int(camera)
    names = [model.camera(i).name for i in range(model.ncam)]
    if camera not in names:
        raise ValueError(
            f"There is no camera '{camera}': the model has {', '.join(names) or 'none'}; without "
            "--camera, the video shows the task's robot."
        )
    return camera


def watch_in_window(
    env: ManagerBasedRlEnv, policy: PolicyProtocol, *, steps: int | None = None
) -> None:
    """Show the policy in MuJoCo's window until it is closed."""
    from manyworlds.utils.devices import torch_threads
    from manyworlds.viewer.native import NativeMujocoViewer

    with torch_threads(1):
        NativeMujocoViewer(env, policy).run(num_steps=steps)


def watch(
    env: ManagerBasedRlEnv,
    policy: PolicyProtocol,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    web_origins: Sequence[str] = (),
    steps: int | None = None,
    checkpoints: CheckpointManager | None = None,
    buckets: Sequence[str] = (),
    bucket: str = "",
) -> str | None:
    """Serve a page that shows the policy in the environment's worlds, until Ctrl-C.

    Returns:
        The bucket that was chosen on the page to be shown next; None to end.
    """
    from manyworlds.utils.devices import torch_threads

    require_extra("viser", "lab")
    from manyworlds.lab.page import walk_in
    from manyworlds.utils.web_access import served_at
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

    viewer = ViserPlayViewer(
        env,
        policy,
        host=host,
        port=port,
        web_origins=web_origins,
        checkpoint_manager=checkpoints,
        walk_in=walk_in,
        buckets=buckets,
        bucket=bucket,
    )
    try:
        viewer.setup()
        print(f"watch at {served_at(viewer.url, port)} (Ctrl-C ends)", flush=True)
        with torch_threads(1):
            viewer.run(num_steps=steps)
    except KeyboardInterrupt:
        return None
    finally:
        viewer.close()
    return viewer.chosen_bucket
