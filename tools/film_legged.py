"""Film generated legged robots that one policy drives, for the documentation.

Run from the project's root: python tools/film_legged.py CHECKPOINT [NUMBER ...]. The policy is
exported once for each robot, and all robots walk in one plain MuJoCo model.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import mujoco
import numpy as np

from manyworlds.asset_zoo.generated_legged import drawn_robot_cfg
from manyworlds.envs import ManagerBasedRlEnv
from manyworlds.rl.exporter_utils import export_policy
from manyworlds.rl.onnx_policy import OnnxPolicy
from manyworlds.rl.runner import OnPolicyRunner
from manyworlds.rl.vecenv_wrapper import RslRlVecEnvWrapper
from manyworlds.scene import Scene, SceneCfg
from manyworlds.tasks.velocity.config.legged import legged_ppo_runner_cfg, robot_env_cfg
from manyworlds.terrains import TerrainEntityCfg
from manyworlds.viewer.video import write_gif

FILE = Path("docs/media/robots_of_many_shapes.gif")
ROBOTS = (1, 2, 7, 9, 16, 19)
"""Numbers of the robots; the policy has not seen the last two."""
_FPS = 12.5
_SECONDS = 4.0
_SIZE = (640, 260)
_SPACING = 0.9  # [m]
_SPEED = 0.4  # [m/s]
_TURN_RATE = 0.5  # [1/s]: commanded turn for an error of the heading of 1 rad
_FASTEST_TURN = 0.5  # [rad/s]


def exported(checkpoint: Path, number: int, folder: Path) -> Path:
    """Export the policy of a checkpoint for a robot, and return the file."""
    cfg = robot_env_cfg(number, play=True)
    cfg.scene.num_envs = 1
    runner = OnPolicyRunner(RslRlVecEnvWrapper(ManagerBasedRlEnv(cfg)), legged_ppo_runner_cfg())
    runner.load(checkpoint, load_cfg={"actor": True})
    return export_policy(runner, folder / f"robot{number}.onnx")


def film(checkpoint: Path, numbers: tuple[int, ...]) -> list[np.ndarray]:
    """Return the frames of robots that walk ahead, side by side."""
    entities = {}
    for place, number in enumerate(numbers):
        entity = drawn_robot_cfg(number)
        y = _SPACING * (0.5 * (len(numbers) - 1) - place)
        entity.init_state.pos = (0.0, y, entity.init_state.pos[2])
        entities[f"robot{number}"] = entity
    scene = Scene(SceneCfg(terrain=TerrainEntityCfg(), entities=entities), device="cpu")
    model = scene.spec.compile()
    physics = robot_env_cfg(numbers[0]).sim.mujoco
    assert physics is not None
    physics.apply(model)
    data = mujoco.MjData(model)
    with tempfile.TemporaryDirectory() as folder:
        policies = {
            f"robot{number}": OnnxPolicy(
                exported(checkpoint, number, Path(folder)), model, prefix=f"robot{number}/"
            )
            for number in numbers
        }
    for policy in policies.values():
        policy.reset(data)
    camera = mujoco.MjvCamera()
    camera.azimuth, camera.elevation, camera.distance = 150.0, -22.0, 3.4
    frames = []
    every = round(1.0 / (_FPS * 0.02))
    with mujoco.Renderer(model, _SIZE[1], _SIZE[0]) as renderer:
        for step in range(round(_SECONDS / 0.02)):
            for name, policy in policies.items():
                x, y = data.body(f"{name}/trunk").xmat[[0, 3]]
                turn = -_TURN_RATE * np.arctan2(y, x)
                turn = np.clip(turn, -_FASTEST_TURN, _FASTEST_TURN)
                policy.commands["twist"][:] = (_SPEED, 0.0, turn)
                policy.begin_period(data)
            for _ in range(2):
                for policy in policies.values():
                    policy.apply(data)
                mujoco.mj_step(model, data)
            for policy in policies.values():
                policy.end_period(data)
            if step % every == 0:
                places = [data.body(f"{name}/trunk").xpos[0] for name in policies]
                camera.lookat = (float(np.median(places)), 0.0, 0.1)
                renderer.update_scene(data, camera)
                renderer.scene.flags[mujoco.mjtRndFlag.mjRND_SHADOW] = False
                frames.append(renderer.render())
    return frames


if __name__ == "__main__":
    chosen = tuple(int(number) for number in sys.argv[2:]) or ROBOTS
    write_gif(FILE, film(Path(sys.argv[1]), chosen), _FPS)
    print(FILE)
