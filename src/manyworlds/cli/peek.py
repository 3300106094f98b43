"""`manyworlds peek [HOST]`: view a world of another program in MuJoCo's window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from manyworlds.cli.options import parse


@dataclass(kw_only=True)
class PeekOptions:
    """View a world of another program in MuJoCo's window.

    Worlds of `manyworlds lab TARGET --serve` and `manyworlds train TASK --view` on this machine are
    found automatically. Double-click a body and drag it while holding Ctrl to pull (right button)
    or turn it (left button).
    """

    host: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[HOST[:PORT]]")] = ""
    """World to show: HOST, HOST:PORT or PORT, of the lab's requests (5559) or of the fast path
    (5571); empty uses the one that was served last."""
    seconds: float | None = None
    """Time until the window closes [s]; None waits until it is closed."""


def main(argv: list[str]) -> int:
    """Run `manyworlds peek`."""
    cfg = parse(PeekOptions, argv, "peek")
    from manyworlds.plugins.peek import PeekWindow
    from manyworlds.plugins.urlab.fast_path.reader import (
        FastPathReader,
        describe_publishers,
        find_publisher,
    )
    from manyworlds.viewer.display import check_display

    address = find_publisher(cfg.host)
    reader = FastPathReader(address)
    try:
        reader.is_there(raise_error=True)  # without a world, a display is of no use
        try:
            check_display(
                "run this where there is a screen, or watch the page of the lab or the training."
            )
        except RuntimeError as error:
            reason = str(error).replace("There is", "there is", 1)
            place = address.removeprefix("tcp://")
            raise RuntimeError(f"A world is served at {place}, but {reason}") from error
        window = PeekWindow(reader, lambda text: print(text, flush=True))
        print(f"{window.scene.scene} of {address.removeprefix('tcp://')}", flush=True)
        if not cfg.host:
            others = describe_publishers(address)
            if others:
                print("also served here: " + "; ".join(others), flush=True)
        try:
            window.run(cfg.seconds)
        finally:
            window.close()
    finally:
        reader.close()
    return 0
