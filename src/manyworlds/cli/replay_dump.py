"""`manyworlds replay-dump FILE`: replay a dump of the NaN guard in MuJoCo C."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from manyworlds.cli.errors import near_files
from manyworlds.cli.options import parse


@dataclass(kw_only=True)
class ReplayDumpOptions:
    """Replay a dump of the NaN guard in MuJoCo C.

    For each world, this prints the first field, element and step with a bad value.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """Dump of the NaN guard (NPZ)."""


def main(argv: list[str]) -> int:
    """Run `manyworlds replay-dump`."""
    path = parse(ReplayDumpOptions, argv, "replay-dump").file
    if not path.exists():
        raise FileNotFoundError(
            f"There is no file '{path}'.{near_files(path)} Give the path of a nan_dump_*.npz that "
            "the NaN guard wrote, as its message names it."
        )
    from manyworlds.sim.diagnostics.flight_replay import FlightRecord, replay
    from manyworlds.sim.diagnostics.status import WorldStatus

    record = FlightRecord.load(path)
    about = record.metadata
    arrays = record.arrays
    print(
        f"{path.name}: {len(about['bad_worlds'])} of {about['num_envs']} worlds failed on the "
        f"{about['engine']} engine; {len(arrays['worlds'])} recorded over "
        f"{len(arrays['nsubsteps'])} step calls, MuJoCo {about['versions']['mujoco']}"
    )
    for index, world in enumerate(arrays["worlds"].tolist()):
        bits = str(WorldStatus(int(arrays["status"][index])).name).lower().replace("|", ", ")
        print(f"world {world} ({bits}): {replay(record, index)}.")
        for sentence in (*record.variants(index), *record.bad_model_values(index)):
            print(f"  note: {sentence}")
    return 0
