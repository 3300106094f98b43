"""Temporal processing of tensors: history, delay, and noise."""

from manyworlds.signals.circular_buffer import CircularBuffer
from manyworlds.signals.delay_buffer import DelayBuffer
from manyworlds.signals.noise_cfg import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseCfg,
    NoiseModelCfg,
    NoiseModelWithAdditiveBiasCfg,
    NoiseParam,
    UniformNoiseCfg,
)
from manyworlds.signals.noise_model import NoiseModel, NoiseModelWithAdditiveBias

__all__ = [
    "CircularBuffer",
    "ConstantNoiseCfg",
    "DelayBuffer",
    "GaussianNoiseCfg",
    "NoiseCfg",
    "NoiseModel",
    "NoiseModelCfg",
    "NoiseModelWithAdditiveBias",
    "NoiseModelWithAdditiveBiasCfg",
    "NoiseParam",
    "UniformNoiseCfg",
]
