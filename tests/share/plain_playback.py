"""Plain playback of policies in a process of its own, whose MuJoCo may be another release.

Reads jobs from the standard input, and writes the states that they end in.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mujoco

from manyworlds.rl.onnx_policy import OnnxPolicy


def main() -> None:
    """Play each policy in its model from the start, and write the version and the last states."""
    states = []
    for job in json.load(sys.stdin):
        model = mujoco.MjModel.from_xml_path(str(Path(job["model"])))
        data = mujoco.MjData(model)
        policy = OnnxPolicy(job["policy"], model, commands=job["commands"], double=True)
        policy.reset(data)
        start = data.qpos.tolist()
        for _ in range(job["steps"]):
            policy.step(data)
        states.append({"start": start, "qpos": data.qpos.tolist(), "qvel": data.qvel.tolist()})
    json.dump({"version": mujoco.__version__, "states": states}, sys.stdout)


if __name__ == "__main__":
    main()
