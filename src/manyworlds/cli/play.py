"""`manyworlds play [TASK]`: watch a policy in the browser, in a window, or as a video."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.cli.errors import UsageError
from manyworlds.cli.parsing import find_task, parse_known, parse_over
from manyworlds.cli.play_options import PlayOptions, PlayStartOptions
from manyworlds.cli.runs import (
    download_checkpoint,
    find_run,
    names_run,
    naming_load,
    play_env_cfg,
    trained_run,
)
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import mujoco
    import numpy as np

    from manyworlds.cli.policies import Policy
    from manyworlds.cli.task_options import PlayTaskOptions
    from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
    from manyworlds.rl import RslRlOnPolicyRunnerCfg
    from manyworlds.rl.run_folder import RunFolder
    from manyworlds.viewer.viser.checkpoints import CheckpointManager


def main(argv: list[str]) -> int:
    """Run `manyworlds play`."""
    start, rest = parse_known(PlayStartOptions, argv, "play")
    if start.onnx is not None:
        from manyworlds.cli import play_onnx

        return play_onnx.main(argv)
    if start.checkpoint is None and len(start.task) == 1 and names_run(start.task[0]):
        start.checkpoint, start.task = Path(start.task[0]), ()
    trained = None
    if not start.task:
        parse_known(PlayStartOptions, argv, "play", add_help=True)
        trained, name = trained_run(start.checkpoint, start.log_root, "play")
        start.task = (name,)
    with naming_load(trained):
        task = find_task(start, start.log_root)
    run(task, start, rest)
    return 0


def run(task: str, given: PlayOptions, rest: Sequence[str] = ()) -> None:
    """Find the policy, build the environment, and show or record them.

    Args:
        task: name of the task.
        given: options that are parsed already.
        rest: other arguments, which change the environment.
    """
    from manyworlds.cli.task_options import PlayTaskOptions, take_num_envs
    from manyworlds.tasks import load_env_cfg, load_rl_cfg
    from manyworlds.utils.config import update_from_plain

    plain = {field.name: getattr(given, field.name) for field in dataclasses.fields(PlayOptions)}
    default = PlayTaskOptions(**plain, env=load_env_cfg(task, play=True))
    options = parse_over(default, [*rest], f"play {task}")
    if options.latest and options.checkpoint is not None:
        raise UsageError("Give either --latest or --checkpoint, not both.")
    checkpoint, folder, rl_cfg = None, None, load_rl_cfg(task)
    if options.agent == "trained":
        require_extra("rsl_rl", "train")
        if options.wandb_run_path is not None:
            checkpoint = download_checkpoint(options)
        else:
            checkpoint, folder = find_run(options.checkpoint, options.log_root, task)
        default = PlayTaskOptions(**plain, env=play_env_cfg(task, folder))
        options = parse_over(default, [*rest], f"play {task}")
        if folder is not None:
            update_from_plain(rl_cfg, folder.agent_params())
        print(f"policy: {checkpoint}")
    take_num_envs(options)
    _show(task, options, rl_cfg, checkpoint, folder)


def _show(
    task: str,
    options: PlayTaskOptions,
    rl_cfg: RslRlOnPolicyRunnerCfg,
    checkpoint: Path | None,
    run: RunFolder | None,
) -> None:
    """Show the policy of a checkpoint, or an untrained one, in the viewer of the options."""
    from manyworlds.cli.policies import UntrainedPolicy, load_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_runner_cls
    from manyworlds.viewer.viser.checkpoints import checkpoints_of

    env = ManagerBasedRlEnv(_env_cfg(options), device=options.device)
    runner = load_runner_cls(task)
    if checkpoint is None:
        policy = UntrainedPolicy(env, options.agent)
    else:
        policy = load_policy(env, rl_cfg, checkpoint, runner)
    if options.video:
        folder = (options.log_root if run is None else run.path) / "videos" / "play"
        path = film(env, policy, folder / task, options.video_length, options.camera)
        print(f"video: {path}")
    elif options.viewer in ("auto", "viser"):
        checkpoints = None
        if run is not None and checkpoint is not None:
            checkpoints = checkpoints_of(
                run,
                checkpoint,
                lambda path: load_policy(env, rl_cfg, path, runner),
                follow=options.checkpoint is None,
            )
        watch(
            env,
            policy,
            host=options.host,
            port=options.port,
            web_origins=options.web_origin,
            steps=options.steps,
            checkpoints=checkpoints,
        )
    else:
        watch_in_window(env, policy, steps=options.steps)


def _env_cfg(cfg: PlayTaskOptions) -> ManagerBasedRlEnvCfg:
    """Return the environment, changed by the options that have no `--env` prefix."""
    env = cfg.env
    if cfg.no_terminations:
        env.terminations = {}
    if cfg.motion_file is not None:
        commands: list[Any] = [*env.commands.values()]
        tracking = [term for term in commands if hasattr(term, "motion_file")]
        if not tracking:
            raise ValueError(
                "--motion-file is given, but this task tracks no motion: leave it out."
            )
        for term in tracking:
            term.motion_file = str(cfg.motion_file)
    env.viewer.height = cfg.video_height or env.viewer.height
    env.viewer.width = cfg.video_width or env.viewer.width
    return env


def film(
    env: ManagerBasedRlEnv,
    policy: Policy,
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


def watch_in_window(env: ManagerBasedRlEnv, policy: Policy, *, steps: int | None = None) -> None:
    """Show the policy in MuJoCo's window until it is closed."""
    from manyworlds.utils.devices import torch_threads
    from manyworlds.viewer.native import NativeMujocoViewer

    with torch_threads(1):
        NativeMujocoViewer(env, policy).run(num_steps=steps)


def watch(
    env: ManagerBasedRlEnv,
    policy: Policy,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    web_origins: Sequence[str] = (),
    steps: int | None = None,
    checkpoints: CheckpointManager | None = None,
) -> None:
    """Serve a page that shows the policy in the environment's worlds, until Ctrl-C."""
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
    )
    try:
        viewer.setup()
        print(f"watch at {served_at(viewer.url, port)} (Ctrl-C ends)", flush=True)
        with torch_threads(1):
            viewer.run(num_steps=steps)
    except KeyboardInterrupt:
        pass
    finally:
        viewer.close()
