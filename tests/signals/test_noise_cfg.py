"""Noise of each step: its distribution, its settings, and that configurations never change."""

import copy

import pytest
import torch

from manyworlds.signals import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModelCfg,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)

ROWS = 20_000


@pytest.fixture(autouse=True)
def seed():
    """Draw the same numbers each time."""
    torch.manual_seed(5)


def test_operations_combine_signal_and_noise():
    """Add, multiply, or replace; leave the signal as it is."""
    data = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    before = data.clone()
    for operation, expected in (
        ("add", [[11.0, 22.0], [13.0, 24.0]]),
        ("scale", [[10.0, 40.0], [30.0, 80.0]]),
        ("abs", [[10.0, 20.0], [10.0, 20.0]]),
    ):
        cfg = ConstantNoiseCfg(bias=(10.0, 20.0), operation=operation)
        assert cfg.apply(data).tolist() == expected
        cfg.apply(data).zero_()
        assert cfg.apply(data).tolist() == expected
        on_device = cfg.to("cpu")
        on_device.apply(data[:1]).zero_()
        assert on_device.apply(data).tolist() == expected
    assert ConstantNoiseCfg(0.5).apply(data).tolist() == (data + 0.5).tolist()
    assert torch.equal(data, before)


def test_uniform_noise_is_uniform():
    """Fill its interval evenly, each component its own, independently."""
    cfg = UniformNoiseCfg(n_min=(-1.0, 0.0), n_max=(1.0, 10.0))
    noise = cfg.apply(torch.zeros(ROWS, 2))
    fractions = (noise - torch.tensor([-1.0, 0.0])) / torch.tensor([2.0, 10.0])
    steps = torch.arange(1, ROWS + 1)[:, None] / ROWS
    assert (fractions.sort(dim=0).values - steps).abs().max() < 1.95 / ROWS**0.5
    assert (fractions >= 0.0).all() and (fractions <= 1.0).all()
    assert abs(torch.corrcoef(fractions.T)[0, 1]) < 0.03


def test_gaussian_noise_is_normal():
    """Follow the normal distribution, each component its own."""
    mean, std = torch.tensor([3.0, -1.0]), torch.tensor([0.5, 2.0])
    cfg = GaussianNoiseCfg(mean=(3.0, -1.0), std=(0.5, 2.0))
    noise = (cfg.apply(torch.zeros(ROWS, 2)) - mean) / std
    steps = torch.arange(1, ROWS + 1)[:, None] / ROWS
    probability = torch.special.ndtr(noise.sort(dim=0).values)
    assert (probability - steps).abs().max() < 1.95 / ROWS**0.5
    assert abs(torch.corrcoef(noise.T)[0, 1]) < 0.03


def test_no_noise_leaves_the_signal():
    """Return the signal where the noise has no width."""
    data = torch.randn(4, 3)
    assert torch.equal(GaussianNoiseCfg(std=0.0).apply(data), data)
    assert torch.equal(UniformNoiseCfg(n_min=0.0, n_max=0.0).apply(data), data)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_type_of_the_signal_stays(dtype):
    """Return the type that came, also from a copy on a device."""
    data = torch.zeros(2, 2, dtype=dtype)
    for cfg in (ConstantNoiseCfg((1.0, 2.0)), UniformNoiseCfg(), GaussianNoiseCfg(std=(1.0, 2.0))):
        assert cfg.apply(data).dtype == dtype
        assert cfg.to("cpu").apply(data).dtype == dtype


def test_configurations_never_change():
    """Hold plain data only, equal to what it was before it was used."""
    for cfg in (ConstantNoiseCfg((1.0, 2.0)), UniformNoiseCfg((0.0, 1.0), 2.0), GaussianNoiseCfg()):
        before = copy.deepcopy(cfg)
        cfg.apply(torch.zeros(3, 2))
        cfg.to("cpu").apply(torch.zeros(3, 2))
        assert cfg == before
        assert vars(cfg).keys() == vars(before).keys()
        assert not any(isinstance(value, torch.Tensor | dict) for value in vars(cfg).values())


def test_a_copy_on_a_device_draws_the_same():
    """Draw the same noise from tensors as from tuples."""
    cfg = UniformNoiseCfg(n_min=(-1.0, 0.0), n_max=(1.0, 10.0))
    torch.manual_seed(1)
    first = cfg.apply(torch.zeros(3, 2))
    torch.manual_seed(1)
    assert torch.equal(cfg.to("cpu").apply(torch.zeros(3, 2)), first)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: UniformNoiseCfg(n_min=2.0, n_max=1.0),
            r"UniformNoiseCfg.n_max \(1.0\) must be >= n_min \(2.0\)",
        ),
        (
            lambda: UniformNoiseCfg(n_min=(0.0, 3.0), n_max=(1.0, 2.0)),
            r"n_max \(\(1.0, 2.0\)\) must be >= n_min",
        ),
        (lambda: UniformNoiseCfg(n_min=(0.0, 0.0), n_max=(1.0,) * 3), "must be >= n_min"),
        (lambda: GaussianNoiseCfg(std=-0.1), r"GaussianNoiseCfg.std \(-0.1\) must be >= 0"),
        (lambda: GaussianNoiseCfg(std=float("nan")), r"std \(nan\) must be >= 0"),
        (lambda: GaussianNoiseCfg(std=(1.0, -1.0)), "must be >= 0 in every component"),
        (
            lambda: ConstantNoiseCfg(operation="multiply"),  # pyright: ignore
            "ConstantNoiseCfg.operation is 'multiply': use 'add', 'scale' or 'abs'",
        ),
        (
            lambda: NoiseModelWithAdditiveBiasCfg(noise_cfg=UniformNoiseCfg()),
            "bias_noise_cfg is None",
        ),
        (
            lambda: NoiseModelWithAdditiveBiasCfg(
                noise_cfg=UniformNoiseCfg(), bias_noise_cfg=UniformNoiseCfg(operation="scale")
            ),
            "leaves every bias zero",
        ),
    ],
)
def test_bad_settings_are_named(make, message):
    """Refuse at construction, with the value and the bound."""
    with pytest.raises(ValueError, match=message):
        make()


def test_a_tuple_must_fit_the_signal():
    """Name the parameter whose length is not that of the signal."""
    for cfg in (GaussianNoiseCfg(std=(1.0, 2.0)), GaussianNoiseCfg(std=(1.0, 2.0)).to("cpu")):
        with pytest.raises(ValueError, match="std has 2 values, but the data has 3 components"):
            cfg.apply(torch.zeros(4, 3))


def test_each_configuration_names_its_model():
    """Build the model that a configuration is for."""
    plain = NoiseModelCfg(noise_cfg=UniformNoiseCfg())
    biased = NoiseModelWithAdditiveBiasCfg(
        noise_cfg=UniformNoiseCfg(), bias_noise_cfg=UniformNoiseCfg()
    )
    assert plain.class_type.__name__ == "NoiseModel"
    assert biased.class_type.__name__ == "NoiseModelWithAdditiveBias"
