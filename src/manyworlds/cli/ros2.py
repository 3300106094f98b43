"""`manyworlds ros2 [HOST]`: publish a live world as ROS 2 messages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from manyworlds.cli.options import parse

if TYPE_CHECKING:
    from manyworlds.plugins.ros2.sinks import Sink


@dataclass(kw_only=True)
class RosOptions:
    """Publish the states of a live world as ROS 2 messages.

    The world is that of `manyworlds lab TARGET --serve`. Messages are joint states, transforms,
    IMUs, images and the clock. They go to ROS where Python has `rclpy`, to a file, or to both.
    """

    host: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[HOST[:PORT]]")] = ""
    """World to read: HOST, HOST:PORT or PORT, of the lab's requests (5559) or of the fast path
    (5571); empty uses the one that was served last."""
    output: Path | None = None
    """MCAP file for `ros2 bag play`, Foxglove or PlotJuggler; ROS is not needed then."""
    cameras: tuple[str, ...] = ()
    """Cameras of the lab whose images are published."""
    depth: bool = False
    """Also publish depth images of these cameras [m]."""
    rate: float = 100.0
    """Maximum number of states per simulated second."""
    camera_rate: float = 10.0
    """Maximum number of images of each camera per second."""
    seconds: float | None = None
    """Time until it stops [s]; None runs until Ctrl-C, or until the lab ends."""


def main(argv: list[str]) -> int:
    """Run `manyworlds ros2`."""
    cfg = parse(RosOptions, argv, "ros2")
    from manyworlds.plugins.ros2.bridge import RosBridge
    from manyworlds.plugins.urlab.fast_path.reader import PublisherError, find_publisher

    sinks = _open_sinks(cfg)
    try:
        bridge = RosBridge(
            find_publisher(cfg.host),
            sinks,
            rate=cfg.rate,
            cameras=cfg.cameras,
            depth=cfg.depth,
            camera_rate=cfg.camera_rate,
            tell=lambda text: print(text, flush=True),
        )
    except BaseException:
        for sink in sinks:
            sink.close()
        if cfg.output is not None:
            cfg.output.unlink()  # it has no messages
        raise
    print(f"{bridge.scene} as ROS 2 messages (Ctrl-C stops)", flush=True)
    try:
        bridge.run(cfg.seconds)
    except KeyboardInterrupt:
        pass
    except PublisherError:
        print("The lab has ended.", flush=True)
    finally:
        bridge.close()
    place = ""
    if cfg.output is not None:
        place = f" in {cfg.output}"
    print(f"{bridge.num_states} states{place}", flush=True)
    return 0


def _open_sinks(cfg: RosOptions) -> list[Sink]:
    """Open the file, and ROS where there is one, or where no file is asked for."""
    import importlib.util

    from manyworlds.plugins.ros2.sinks import McapSink, RosSink

    sinks: list[Sink] = []
    if cfg.output is None or importlib.util.find_spec("rclpy") is not None:
        sinks.append(RosSink())
    if cfg.output is not None:
        sinks.append(McapSink(cfg.output))
    return sinks
