"""Run a trained policy in plain MuJoCo, as a robot's computer would.

    python examples/12_onnx_in_mujoco.py [RUN]     # a run folder; without one, a short training

You learn that a run's `policy.onnx` and `scene/scene.xml` are all that a program needs: the file
describes observations, actions and actuators. The loop below does what `OnnxPolicy.step` does, in
the parts that a program on a robot has: read sensors, infer, send commands.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.rl import OnnxPolicy


def trained(folder: Path) -> Path:
    """Train for a few iterations; return the run folder."""
    from manyworlds.rl.training import train
    from manyworlds.tasks import load_env_cfg, load_rl_cfg

    env_cfg, rl_cfg = load_env_cfg("Cartpole-Balance"), load_rl_cfg("Cartpole-Balance")
    env_cfg.scene.num_envs, rl_cfg.max_iterations = 64, 2
    return train("Cartpole-Balance", env_cfg, rl_cfg, folder).run.path


def deploy(run: Path, seconds: float) -> tuple[mujoco.MjData, float]:
    """Run the policy; return the final state, and the slowest control period [s]."""
    import time

    model = mujoco.MjModel.from_xml_path(str(run / "scene" / "scene.xml"))
    data = mujoco.MjData(model)
    policy = OnnxPolicy(run / "policy.onnx", model)
    policy.reset(data)  # default pose of the robot, empty histories and delays
    period = policy.description["control_period_s"]
    decimation = policy.description["decimation"]
    slowest = 0.0
    for _ in range(round(seconds / period)):
        start = time.perf_counter()
        policy.begin_period(data)  # observe and infer
        for _ in range(decimation):
            policy.apply(data)  # targets to controls, as the trained actuators do
            mujoco.mj_step(model, data)
        policy.end_period(data)
        slowest = max(slowest, time.perf_counter() - start)
    return data, slowest


def short(run: Path, seconds: float) -> np.ndarray:
    """Return the final positions of the same program in one call per period, shape [nq]."""
    model = mujoco.MjModel.from_xml_path(str(run / "scene" / "scene.xml"))
    data = mujoco.MjData(model)
    policy = OnnxPolicy(run / "policy.onnx", model)
    policy.reset(data)
    for _ in range(round(seconds / policy.description["control_period_s"])):
        policy.step(data)
    return data.qpos


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, nargs="?", help="run folder")
    run = parser.parse_args().run or trained(Path("runs"))
    data, slowest = deploy(run, seconds=2.0)
    print(f"after {data.time:.2f} s: positions {data.qpos.round(4).tolist()}")
    print(f"the slowest control period took {1e3 * slowest:.2f} ms")
    print(f"the short form gives the same bits: {np.array_equal(data.qpos, short(run, 2.0))}")
