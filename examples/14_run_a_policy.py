"""Run an exported policy in a program of its own.

    manyworlds train Cartpole-Balance
    manyworlds lab Cartpole-Balance --serve --headless
    python examples/14_run_a_policy.py runs/cartpole/RUN/policy.onnx

The lab makes the physics steps; this program observes its own copy of the world, and sends what
the policy's actuators get.
"""

from __future__ import annotations

import argparse
import sys

from manyworlds.lab.client import LabClient, LabError, connect
from manyworlds.rl import OnnxPolicy


def run(lab: LabClient, path: str, periods: int) -> None:
    """Run a policy for some control periods, from the initial state."""
    lab.set_mode("direct")
    lab.reset()
    policy = OnnxPolicy(path, lab.model)
    (robot,) = [name for name in lab.robots if lab[name].actuators]
    controls = [int(i) for i in lab.read_robot(robot)["controls"]]
    data = lab.data  # follows each step
    for _ in range(periods):
        policy.begin_period(data)
        for _ in range(policy.description["decimation"]):
            policy.apply(data)
            lab.step(targets={robot: data.ctrl[controls].tolist()})
        policy.end_period(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("policy", help="ONNX file of the policy")
    parser.add_argument(
        "address", nargs="?", default="tcp://127.0.0.1:5559", help="address of the lab"
    )
    args = parser.parse_args()
    try:
        with connect(args.address) as lab:
            run(lab, args.policy, 60)
            print(f"time {lab.data.time:.2f} s, positions {lab.data.qpos.round(4).tolist()}")
    except (LabError, OSError, ValueError) as error:  # no lab, no policy, or one of another world
        sys.exit(str(error))
