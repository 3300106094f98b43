"""Noise on tensors: configurations without state, and models that keep a bias a world."""

from manyworlds.utils.noise.noise_cfg import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseCfg,
    NoiseModelCfg,
    NoiseModelWithAdditiveBiasCfg,
    NoiseParam,
    UniformNoiseCfg,
)
from manyworlds.utils.noise.noise_model import NoiseModel, NoiseModelWithAdditiveBias

__all__ = [
    "ConstantNoiseCfg",
    "GaussianNoiseCfg",
    "NoiseCfg",
    "NoiseModel",
    "NoiseModelCfg",
    "NoiseModelWithAdditiveBias",
    "NoiseModelWithAdditiveBiasCfg",
    "NoiseParam",
    "UniformNoiseCfg",
]
