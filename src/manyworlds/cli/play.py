"""`manyworlds play [TASK]`: watch a policy in the browser, in a window, or as a film."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manyworlds.cli.common import (
    UsageError,
    download_checkpoint,
    find_run,
    parse,
    play_env_cfg,
    take_modules,
    take_task,
)
from manyworlds.utils.extras import require_extra

if TYPE_CHECKING:
    import mujoco
    import numpy as np

    from manyworlds.cli.options import PlayConfig
    from manyworlds.cli.policy import Policy
    from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
    from manyworlds.viewer.viser.checkpoints import CheckpointManager


def main(argv: list[str]) -> int:
    """Parse the command line, load the policy and open the page."""
    argv = take_modules(argv)
    if any(arg.partition("=")[0] == "--onnx" for arg in argv):
        from manyworlds.cli import play_onnx

        return play_onnx.main(argv)
    if (not argv or argv[0].startswith("-")) and not {"-h", "--help"} & set(argv):
        argv = [_task_of_run(argv), *argv]
    task, argv = take_task(argv, "play")
    from manyworlds.cli.options import PlayConfig
    from manyworlds.cli.policy import load_policy, untrained_policy
    from manyworlds.envs import ManagerBasedRlEnv
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls
    from manyworlds.utils.config import update_from_plain
    from manyworlds.viewer.viser.checkpoints import checkpoints_of

    cfg = parse(PlayConfig, PlayConfig(env=load_env_cfg(task, play=True)), argv, f"play {task}")
    if cfg.latest and cfg.checkpoint is not None:
        raise UsageError("Give either --latest or --checkpoint, not both.")
    checkpoint, run, rl_cfg = None, None, load_rl_cfg(task)
    if cfg.agent == "trained":
        require_extra("rsl_rl", "train")
        if cfg.wandb_run_path is not None:
            checkpoint = download_checkpoint(cfg)
        else:
            checkpoint, run = find_run(cfg.checkpoint, cfg.log_root, task)
        cfg = parse(PlayConfig, PlayConfig(env=play_env_cfg(task, run)), argv, f"play {task}")
        if run is not None:
            update_from_plain(rl_cfg, run.agent_params())
        print(f"policy: {checkpoint}")
    env = ManagerBasedRlEnv(_env_cfg(cfg), device=cfg.device)
    if checkpoint is None:
        policy = untrained_policy(env, cfg.agent)
    else:
        policy = load_policy(env, rl_cfg, checkpoint, load_runner_cls(task))
    if cfg.video:
        folder = (cfg.log_root if run is None else run.path) / "videos" / "play"
        print(f"film: {film(env, policy, folder / task, cfg.video_length, cfg.camera)}")
    elif cfg.viewer == "native":
        watch_in_window(env, policy, steps=cfg.steps)
    else:
        checkpoints = None
        if run is not None and checkpoint is not None:
            runner = load_runner_cls(task)
            checkpoints = checkpoints_of(
                run,
                checkpoint,
                lambda path: load_policy(env, rl_cfg, path, runner),
                follow=cfg.checkpoint is None,
            )
        watch(
            env,
            policy,
            host=cfg.host,
            port=cfg.port,
            steps=cfg.steps,
            checkpoints=checkpoints,
        )
    return 0


def _env_cfg(cfg: PlayConfig) -> ManagerBasedRlEnvCfg:
    """The environment with what the options of `play` change of it."""
    env = cfg.env
    if cfg.num_envs is not None:
        env.scene.num_envs = cfg.num_envs
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
    """Film the policy without a window; return the video."""
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
            "--camera, the film looks at the task's robot."
        )
    return camera


def watch_in_window(env: ManagerBasedRlEnv, policy: Policy, *, steps: int | None = None) -> None:
    """Show the policy in MuJoCo's window until it is closed."""
    from manyworlds.utils.devices import torch_threads
    from manyworlds.viewer.native import NativeMujocoViewer

    with torch_threads(1):
        NativeMujocoViewer(env, policy).run(num_steps=steps)


def _task_of_run(argv: list[str]) -> str:
    """The task of the run that is meant where no task is named.

    Raises:
        ValueError: the checkpoint lies in no run folder, which would tell.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--checkpoint", "--checkpoint-file", "--checkpoint_file", type=Path)
    parser.add_argument("--log-root", "--log_root", type=Path, default=Path("runs"))
    known, _ = parser.parse_known_args(argv)
    checkpoint, run = find_run(known.checkpoint, known.log_root, None)
    if run is None or run.task is None:
        raise ValueError(
            f"'{checkpoint}' lies in no run folder: name its task, manyworlds play TASK "
            f"--checkpoint {checkpoint}."
        )
    return run.task


def watch(
    env: ManagerBasedRlEnv,
    policy: Policy,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    steps: int | None = None,
    checkpoints: CheckpointManager | None = None,
) -> None:
    """Serve a page that shows the policy in the environment's worlds, until Ctrl-C."""
    from manyworlds.utils.devices import torch_threads

    require_extra("viser", "lab")
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

    viewer = ViserPlayViewer(env, policy, host=host, port=port, checkpoint_manager=checkpoints)
    try:
        viewer.setup()
        print(f"watch at {viewer.url} (Ctrl-C ends)", flush=True)
        with torch_threads(1):
            viewer.run(num_steps=steps)
    except KeyboardInterrupt:
        pass
    finally:
        viewer.close()
