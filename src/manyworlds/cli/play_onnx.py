"""`manyworlds play --onnx FILE`: run an exported policy in plain MuJoCo."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from manyworlds.cli.options import Command, Load, parse
from manyworlds.cli.task_files import load_task_of

if TYPE_CHECKING:
    import mujoco

    from manyworlds.rl import OnnxPolicy

_ARROWS = {265: (0, 1.0), 264: (0, -1.0), 263: (2, 1.0), 262: (2, -1.0)}
"""Column of a command and direction of its change, for the GLFW codes of the arrow keys."""
_KEY_STEP = 0.1


@dataclass(kw_only=True)
class PlayOnnxOptions:
    """Run an exported policy in plain MuJoCo. The arrow keys change the first command."""

    onnx: Path
    """ONNX file of the policy."""
    scene: Path | None = None
    """MJCF file; None uses scene/scene.xml beside the policy."""
    command: Command = field(default_factory=dict)
    headless: bool = False
    """Open no window, run as fast as possible, and print the last state."""
    steps: int | None = None
    """Number of control steps to run; None runs until the window closes."""
    load: Load = ()


def main(argv: list[str]) -> int:
    """Run `manyworlds play --onnx`."""
    cfg = parse(PlayOnnxOptions, argv, "play")
    if not cfg.onnx.is_file():
        raise FileNotFoundError(f"There is no policy '{cfg.onnx}': give the path of an .onnx file.")
    scene = cfg.scene or cfg.onnx.parent / "scene" / "scene.xml"
    if not scene.is_file():
        from manyworlds.rl.onnx_policy import open_session

        open_session(cfg.onnx)  # whose error goes first
        raise FileNotFoundError(f"There is no scene '{scene}': name the MJCF file with --scene.")
    if cfg.headless and cfg.steps is None:
        raise ValueError("--headless has no window to close: also give --steps.")
    import mujoco

    from manyworlds.rl import OnnxPolicy
    from manyworlds.rl.run_folder import RunFolder

    run = RunFolder.of_checkpoint(cfg.onnx)
    if run is not None:
        load_task_of(run)

    model = mujoco.MjModel.from_xml_path(str(scene))
    policy = OnnxPolicy(cfg.onnx, model)
    set_commands(policy, cfg.command)
    data = mujoco.MjData(model)
    policy.reset(data)
    if cfg.headless:
        for _ in range(cfg.steps or 0):
            policy.step(data)
        print(f"time {data.time:.2f} s, qpos {data.qpos.round(4).tolist()}")
    else:
        _run_in_window(policy, data, cfg.steps)
    return 0


def set_commands(policy: OnnxPolicy, values: Mapping[str, Sequence[float]]) -> None:
    """Set commands of a policy.

    Args:
        policy: a policy with the commands that its observations have.
        values: values by name of the command.

    Raises:
        ValueError: the policy has no such command, or one with another number of values.
    """
    for name, given in values.items():
        if name not in policy.commands:
            raise ValueError(
                f"The policy '{policy.path}' has no command '{name}'; it has: "
                f"{', '.join(policy.commands) or 'none'}."
            )
        command = policy.commands[name]
        if len(given) != command.size:
            zeros = tuple([0.0] * command.size)
            raise ValueError(
                f"The command '{name}' of '{policy.path}' has {command.size} values, got "
                f"{len(given)}: give all, as in --command \"{{'{name}': {zeros}}}\"."
            )
        command[:] = given


def _run_in_window(policy: OnnxPolicy, data: mujoco.MjData, steps: int | None) -> None:
    """Run in real time in MuJoCo's own window."""
    from manyworlds.viewer.display import check_display

    check_display(
        f"`manyworlds lab {shlex.quote(str(policy.path))}` shows the policy in a browser, and "
        "--headless with --steps runs it without a picture."
    )
    import mujoco.viewer

    with mujoco.viewer.launch_passive(policy.model, data, key_callback=_steer(policy)) as window:
        due = time.perf_counter()
        done = 0
        while window.is_running() and done != steps:
            with window.lock():
                policy.step(data)
            window.sync()
            done += 1
            due += policy.control_period
            time.sleep(max(0.0, due - time.perf_counter()))


def _steer(policy: OnnxPolicy) -> Callable[[int], None]:
    def on_key(key: int) -> None:
        column, sign = _ARROWS.get(key, (0, 0.0))
        for command in list(policy.commands.values())[:1]:
            if column < command.size:
                command[column] += sign * _KEY_STEP

    return on_key
