"""A small environment of cart-poles, and what the viewer tests need of the machine."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import mujoco
import pytest
import torch

from manyworlds.sim import Simulation
from manyworlds.utils.viewer_config import ViewerConfig

if TYPE_CHECKING:
    from manyworlds.envs.types import StepObserver

CARTPOLE = """
<mujoco model="cartpole">
  <option timestep="0.01"/>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1=".75 .85 .95" rgb2=".35 .5 .7"
      width="64" height="64"/>
    <texture name="floor" type="2d" builtin="checker" rgb1=".82 .84 .86" rgb2=".74 .77 .8"
      width="128" height="128"/>
    <material name="floor" texture="floor" texrepeat="1 1" texuniform="true"/>
  </asset>
  <worldbody>
    <light pos="0 -2 4" dir="0 .4 -1" directional="true"/>
    <geom name="floor" type="plane" size="0 0 .05" material="floor"/>
    <body name="cartpole/base" pos="0 0 1">
      <geom type="capsule" fromto="-1.2 0 0 1.2 0 0" size=".02" rgba=".35 .38 .42 1"
        contype="0" conaffinity="0"/>
      <body name="cartpole/cart">
        <joint name="cartpole/slider" type="slide" axis="1 0 0" range="-1 1" damping="1"/>
        <geom type="box" size=".15 .1 .08" mass="1" rgba=".16 .42 .72 1"/>
        <body name="cartpole/pole">
          <joint name="cartpole/hinge" axis="0 1 0" damping=".02"/>
          <geom type="capsule" fromto="0 0 0 0 0 .7" size=".035" mass=".1"
            rgba=".9 .55 .15 1" contype="0" conaffinity="0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="cartpole/slider" gear="10" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


class CartpoleEnv:
    """The least that a viewer asks of an environment."""

    step_dt = 0.02

    def __init__(self, num_envs: int, viewer: ViewerConfig | None = None) -> None:
        model = mujoco.MjModel.from_xml_string(CARTPOLE)
        self.sim = Simulation(num_envs, model=model, device="cpu")
        self.cfg = SimpleNamespace(viewer=viewer or ViewerConfig())
        self.num_envs = num_envs
        self.device = torch.device("cpu")
        self.num_resets = 0
        self.observers: list[StepObserver] = []
        self.reset()

    @property
    def unwrapped(self) -> CartpoleEnv:
        """This environment has no wrappers."""
        return self

    def get_observations(self) -> dict[str, torch.Tensor]:
        """Positions and velocities."""
        data = self.sim.data
        return {"policy": torch.cat([data.qpos, data.qvel], dim=-1)}

    def step(self, actions: torch.Tensor) -> tuple[Any, ...]:
        """Push the carts."""
        self.sim.data.ctrl[:] = actions
        self.sim.step(2, refresh=True)
        for observer in self.observers:
            observer.after_step()
        zeros = torch.zeros(self.num_envs)
        return self.get_observations(), zeros, zeros.bool(), zeros.bool(), {}

    def reset(self) -> tuple[Any, dict]:
        """Spread the poles over a range of angles."""
        self.num_resets += 1
        self.sim.reset()
        self.sim.data.qpos[:, 1] = torch.linspace(-1.0, 1.0, self.num_envs)
        self.sim.data.qpos[:, 0] = torch.linspace(-0.8, 0.8, self.num_envs)
        self.sim.forward()
        return self.get_observations(), {}

    def close(self) -> None:
        """Nothing is held."""


@pytest.fixture
def make_env(engine: str) -> type[CartpoleEnv]:
    """Make an environment of so many cart-poles, seen through a `ViewerConfig`."""
    return CartpoleEnv


@pytest.fixture
def rest() -> Callable[[Any], torch.Tensor]:
    """A policy that does nothing."""
    return lambda obs: torch.zeros(len(obs["policy"]), 1)
