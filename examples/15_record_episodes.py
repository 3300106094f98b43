"""Record ten episodes of a task to MCAP files.

    manyworlds lab Cartpole-Balance --stepper environment --serve --headless
    python examples/15_record_episodes.py episodes

The files are opened by Foxglove, by the page of the lab, and by `manyworlds lab` for a replay.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from manyworlds.lab.client import LabEnv, LabError, connect

EPISODES = 10
MOST_STEPS = 100  # control steps of an episode


def record(env: LabEnv, folder: Path) -> list[Path]:
    """Record episodes under random actions; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    env.action_space.seed(0)
    files = []
    for episode in range(EPISODES):
        env.reset(seed=episode)
        name = env.lab.recording_start()["name"]  # a file of the lab's machine
        for _ in range(MOST_STEPS):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                break
        env.lab.recording_stop()
        files.append(folder / f"episode_{episode}.mcap")
        files[-1].write_bytes(env.lab.recording_export(files[-1].name, name)["content"])
    return files


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder of the new files")
    parser.add_argument(
        "address", nargs="?", default="tcp://127.0.0.1:5559", help="address of the lab"
    )
    args = parser.parse_args()
    try:
        with connect(args.address) as lab:
            env = LabEnv(lab, obs_group="actor")
            for file in record(env, args.folder):
                print(f"{file}: {file.stat().st_size} bytes")
            env.close()
    except (LabError, OSError, ValueError) as error:  # no lab, no environment, no folder
        sys.exit(str(error))
