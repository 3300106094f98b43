"""Editing of MuJoCo specs before a model is compiled."""

from manyworlds.utils import mujoco_messages as mujoco_messages
