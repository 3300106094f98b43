"""`manyworlds replay-dump FILE`: tell where a recorded world went bad first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.common import parse


@dataclass(kw_only=True)
class ReplayArgs:
    """Replay a file that the NaN guard wrote in MuJoCo C.

    Names the first field, element and step that went bad in each of its worlds.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """What the NaN guard wrote."""


def main(argv: list[str]) -> int:
    """Replay the worlds of a file in MuJoCo C; print what went bad first in each."""
    path = parse(ReplayArgs, None, argv, "replay-dump").file
    from manyworlds.sim.diagnostics.flight_replay import FlightRecord, replay
    from manyworlds.sim.diagnostics.status import WorldStatus

    record = FlightRecord.load(path)
    about, arrays = record.metadata, record.arrays
    print(
        f"{path.name}: {len(about['bad_worlds'])} of {about['num_envs']} worlds went bad on the "
        f"{about['engine']} engine; {len(arrays['worlds'])} recorded over "
        f"{len(arrays['nsubsteps'])} step calls, MuJoCo {about['versions']['mujoco']}"
    )
    for index, world in enumerate(arrays["worlds"].tolist()):
        bits = str(WorldStatus(int(arrays["status"][index])).name).lower().replace("|", ", ")
        print(f"world {world} ({bits}): {replay(record, index)}.")
        for sentence in (*record.variants(index), *record.bad_model_values(index)):
            print(f"  note: {sentence}")
    return 0
