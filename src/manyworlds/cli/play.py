"""`manyworlds play TASK`: watch a policy in the browser."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from manyworlds.cli.common import find_run, parse, play_env_cfg, take_task
from manyworlds.cli.policy import Policy, load_policy, untrained_policy
from manyworlds.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from manyworlds.utils.config import update_from_plain
from manyworlds.utils.extras import require_extra


@dataclass(kw_only=True)
class PlayConfig:
    """Watch a policy in many worlds."""

    env: ManagerBasedRlEnvCfg
    """The environment."""
    agent: Literal["trained", "random", "zero"] = "trained"
    """Which policy."""
    latest: bool = False
    """Take the newest run of the task, as without --checkpoint."""
    checkpoint: Path | None = None
    """Take this checkpoint."""
    log_root: Path = Path("runs")
    """Where to look for runs."""
    device: str | None = None
    """Torch device; None takes CUDA where there is one, else the CPU."""
    host: str = "127.0.0.1"
    """Address to serve the page on."""
    port: int = 8080
    """Port to serve the page on; the next free one is taken if it is in use."""
    steps: int | None = None
    """Stop after this many control steps; None goes on until Ctrl-C."""


def main(argv: list[str]) -> int:
    """Parse the command line, load the policy and open the page."""
    task, argv = take_task(argv, "play")
    from manyworlds.tasks import load_env_cfg, load_rl_cfg, load_runner_cls

    cfg = parse(PlayConfig, PlayConfig(env=load_env_cfg(task, play=True)), argv, f"play {task}")
    if cfg.latest and cfg.checkpoint is not None:
        raise ValueError("Give either --latest or --checkpoint, not both.")
    require_extra("viser", "lab")
    checkpoint, rl_cfg = None, load_rl_cfg(task)
    if cfg.agent == "trained":
        require_extra("rsl_rl", "train")
        checkpoint, run = find_run(cfg.checkpoint, cfg.log_root, task)
        cfg = parse(PlayConfig, PlayConfig(env=play_env_cfg(task, run)), argv, f"play {task}")
        if run is not None:
            update_from_plain(rl_cfg, run.agent_params())
        print(f"policy: {checkpoint}")
    env = ManagerBasedRlEnv(cfg.env, device=cfg.device)
    if checkpoint is None:
        policy = untrained_policy(env, cfg.agent)
    else:
        policy = load_policy(env, rl_cfg, checkpoint, load_runner_cls(task))
    watch(env, policy, host=cfg.host, port=cfg.port, steps=cfg.steps)
    return 0


def watch(
    env: ManagerBasedRlEnv,
    policy: Policy,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    steps: int | None = None,
) -> None:
    """Serve a page that shows the policy in the environment's worlds, until Ctrl-C."""
    from manyworlds.utils.torch import torch_threads
    from manyworlds.viewer.viser.viewer import ViserPlayViewer

    check_address(host, port)
    viewer = ViserPlayViewer(env, policy, host=host, port=port)
    try:
        viewer.setup()
        print(f"watch at {viewer.url} (Ctrl-C ends)", flush=True)
        with torch_threads(1):
            viewer.run(num_steps=steps)
    except KeyboardInterrupt:
        pass
    finally:
        viewer.close()


def check_address(host: str, port: int) -> None:
    """Make sure that a page can be served there.

    Raises:
        ValueError: the port is out of range, or this machine does not have the address.
    """
    if not 0 < port < 65536:
        raise ValueError(f"--port must be in [1, 65535], got {port}.")
    try:
        with socket.create_server((host, 0), family=_family(host)):
            pass
    except OSError as error:
        raise ValueError(
            f"Cannot serve on --host {host}: {error.strerror or error}. Use 127.0.0.1, or an "
            "address of this machine."
        ) from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
