"""Noise with a bias that each world draws when it is reset."""

import pytest
import torch

from manyworlds.signals import (
    ConstantNoiseCfg,
    GaussianNoiseCfg,
    NoiseModel,
    NoiseModelCfg,
    NoiseModelWithAdditiveBias,
    NoiseModelWithAdditiveBiasCfg,
    UniformNoiseCfg,
)

SILENT = ConstantNoiseCfg(0.0)


@pytest.fixture(autouse=True)
def seed():
    """Draw the same numbers each time."""
    torch.manual_seed(5)


def biased(num_envs: int = 4, **options) -> NoiseModelWithAdditiveBias:
    """Build a model whose only noise is the bias."""
    options = {"noise_cfg": SILENT, "bias_noise_cfg": GaussianNoiseCfg(), **options}
    cfg = NoiseModelWithAdditiveBiasCfg(**options)
    return NoiseModelWithAdditiveBias(cfg, num_envs, "cpu")


def test_a_plain_model_applies_its_noise():
    """Draw as its configuration does, and take any reset."""
    cfg = NoiseModelCfg(noise_cfg=UniformNoiseCfg(n_min=(0.0, 1.0), n_max=(1.0, 2.0)))
    model = NoiseModel(cfg, 3, "cpu")
    torch.manual_seed(1)
    first = model(torch.zeros(3, 2))
    model.reset(torch.tensor([0]))
    torch.manual_seed(1)
    assert torch.equal(cfg.noise_cfg.apply(torch.zeros(3, 2)), first)
    assert cfg == NoiseModelCfg(noise_cfg=UniformNoiseCfg((0.0, 1.0), (1.0, 2.0)))


def test_a_bias_stays_until_its_world_is_reset():
    """Keep every bias between resets, and draw only those of the worlds named."""
    model, zero = biased(), torch.zeros(4, 3)
    first = model(zero)
    assert torch.equal(model(zero), first)
    assert len(first.flatten().unique()) == 12
    for ids, renewed in (
        (torch.tensor([1, 3]), [1, 3]),
        (torch.tensor([True, False, False, False]), [0]),
        ([2], [2]),
        (slice(0, 2), [0, 1]),
        (None, [0, 1, 2, 3]),
    ):
        before = model(zero)
        model.reset(ids)
        changed = (model(zero) != before).all(dim=1)
        assert changed.nonzero().flatten().tolist() == renewed
        assert torch.equal(model(zero)[~changed], before[~changed])


def test_a_bias_is_one_a_world_or_one_a_component():
    """Share one bias among the components of a world where that is asked for."""
    shared = biased(sample_bias_per_component=False)(torch.zeros(4, 3, 2))
    assert (shared == shared[:, :1, :1]).all()
    assert len(shared.unique()) == 4
    assert len(biased()(torch.zeros(4, 3, 2)).unique()) == 24


def test_a_bias_does_not_wander():
    """Draw each bias from the same distribution, however often it was drawn before."""
    model = biased(20_000, bias_noise_cfg=GaussianNoiseCfg(mean=1.0, std=2.0))
    zero = torch.zeros(20_000, 1)
    model(zero)
    for _ in range(20):
        model.reset()
    assert abs(model(zero).mean() - 1.0) < 0.05
    assert abs(model(zero).std() - 2.0) < 0.05


def test_noise_and_bias_add_up():
    """Put both on the signal, which stays as it is."""
    model = biased(
        noise_cfg=UniformNoiseCfg(n_min=5.0, n_max=6.0), bias_noise_cfg=ConstantNoiseCfg(10.0)
    )
    data = torch.ones(4, 2)
    noisy = model(data)
    assert ((noisy >= 16.0) & (noisy <= 17.0)).all()
    assert (model(data) != noisy).all()
    assert (data == 1.0).all()


def test_a_saved_model_goes_on():
    """Keep the biases, in a model that had none and in one that had others."""
    first, zero = biased(), torch.zeros(4, 3)
    empty = first.state_dict()
    expected = first(zero)
    state = first.state_dict()
    first.reset()
    fresh = biased()
    for model in (fresh, first):
        model.load_state_dict(state)
        assert torch.equal(model(zero), expected)
    fresh.reset()
    assert not torch.equal(fresh(zero), expected)
    first.load_state_dict(state)
    assert torch.equal(first(zero), expected)
    first.load_state_dict(empty)
    assert not torch.equal(first(zero), expected)


def test_inference_mode_leaves_a_usable_bias():
    """Draw inside inference mode, and reset outside of it."""
    model = biased()
    with torch.inference_mode():
        before = model(torch.zeros(4, 2)).clone()
    model.reset([0])
    assert (model(torch.zeros(4, 2)) != before).any(dim=1).tolist() == [True, False, False, False]


def test_wrong_use_is_refused():
    """Name what is wrong, with the value and the bound."""
    with pytest.raises(ValueError, match="num_envs must be >= 1, got 0"):
        NoiseModel(NoiseModelCfg(noise_cfg=SILENT), 0, "cpu")
    with pytest.raises(ValueError, match="has 5 rows, but the noise model was built for 4 worlds"):
        biased()(torch.zeros(5, 2))
    cfg = NoiseModelWithAdditiveBiasCfg(noise_cfg=SILENT, bias_noise_cfg=SILENT)
    cfg.bias_noise_cfg = None
    with pytest.raises(ValueError, match="bias_noise_cfg is None"):
        NoiseModelWithAdditiveBias(cfg, 4, "cpu")
