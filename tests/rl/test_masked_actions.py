"""Distributions whose padded columns do not count."""

import pytest
import torch
from rsl_rl.modules import GaussianDistribution
from tensordict import TensorDict

from manyworlds.rl.config import masked_gaussian_distribution
from manyworlds.rl.masked_actions import MaskedGaussianDistribution, MaskedMLPModel

MASK = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])


def updated(mean: torch.Tensor, **settings) -> MaskedGaussianDistribution:
    """Return a distribution of two robots, with three actions and with one."""
    distribution = MaskedGaussianDistribution(3, **settings)
    distribution.update(torch.stack([mean, MASK], dim=1))
    return distribution


@pytest.mark.parametrize("settings", [{}, {"shared_std": True}, {"std_type": "log"}])
def test_without_padding_it_is_rsl_rls(settings):
    """Compute for a robot with all actions what rsl_rl's distribution does."""
    mean = torch.randn(2, 3)
    ours = updated(mean, init_std=0.7, **settings)
    theirs = GaussianDistribution(3, init_std=0.7)
    theirs.update(mean)
    actions = torch.randn(2, 3)
    assert torch.allclose(ours.log_prob(actions)[0], theirs.log_prob(actions)[0])
    assert torch.allclose(ours.entropy[0], theirs.entropy[0])
    assert torch.allclose(ours.std[0], theirs.std[0])
    other = tuple(values + 0.1 for values in theirs.params)
    assert torch.allclose(
        ours.kl_divergence(ours.params, other)[0], theirs.kl_divergence(theirs.params, other)[0]
    )


def test_padded_columns_count_nowhere():
    """Compute for a robot with one action what a distribution of that action alone does."""
    mean = torch.randn(2, 3)
    ours = updated(mean, init_std=0.7)
    alone = GaussianDistribution(1, init_std=0.7)
    alone.update(mean[:, :1])
    actions = torch.randn(2, 3)
    assert torch.allclose(ours.log_prob(actions)[1], alone.log_prob(actions[:, :1])[1])
    assert torch.allclose(ours.entropy[1], alone.entropy[1])
    sample = ours.sample()
    assert sample[0].all() and sample[1, 0] and not sample[1, 1:].any()
    assert not ours.std[1, 1:].any() and not ours.mean[1, 1:].any()
    moved = updated(mean + 0.3, init_std=0.5)
    alone_moved = GaussianDistribution(1, init_std=0.5)
    alone_moved.update(mean[:, :1] + 0.3)
    expected = alone.kl_divergence(alone.params, alone_moved.params)[1]
    assert torch.allclose(ours.kl_divergence(ours.params, moved.params)[1], expected)


def test_padded_columns_have_no_gradient():
    """Leave means of padded columns, and the deviations, as they are for them."""
    mean = torch.randn(2, 3, requires_grad=True)
    ours = updated(mean)
    actions = torch.randn(2, 3)
    (ours.log_prob(actions).sum() + ours.entropy.sum()).backward()
    assert mean.grad is not None
    assert mean.grad[MASK > 0].all() and not mean.grad[MASK == 0].any()
    deviations = updated(mean.detach())
    (deviations.log_prob(actions)[1] + deviations.entropy[1]).backward()
    gradient = deviations.std_param.grad
    assert gradient is not None and gradient[0] != 0.0 and not gradient[1:].any()


def test_the_mean_can_be_exported():
    """Return the means of real columns, by the module that is exported, too."""
    output = torch.stack([torch.randn(2, 3), MASK], dim=1)
    distribution = MaskedGaussianDistribution(3)
    mean = distribution.deterministic_output(output)
    assert torch.equal(mean, output[:, 0] * MASK)
    assert torch.equal(distribution.as_deterministic_output_module()(output), mean)


def test_an_mlp_reads_the_mask():
    """Act by the real columns only, keep the mask out of the normalization, and export the same."""
    obs = TensorDict({"state": 5.0 + torch.randn(2, 4), "mask": MASK}, [2])
    groups = {"actor": ["state", "mask"]}
    noise = masked_gaussian_distribution()
    model = MaskedMLPModel(
        obs, groups, "actor", 3, hidden_dims=(8,), obs_normalization=True, distribution_cfg=noise
    )
    model.update_normalization(obs)
    latent = model.get_latent(obs)
    assert torch.equal(latent[:, 4:], MASK) and latent[:, :4].abs().max() < 2.0
    actions = model(obs)
    assert (actions != 0.0).float().equal(MASK)
    exported = model.as_onnx(verbose=False)
    assert torch.allclose(exported(torch.cat([obs["state"], MASK], dim=1)), actions)
    model(obs, stochastic_output=True)
    assert model.output_std.shape == (2, 3) and not model.output_std[1, 1:].any()


def test_wrong_settings_of_an_mlp_are_named():
    """Refuse a last group that is no mask, and a distribution without one."""
    obs = TensorDict({"state": torch.randn(2, 2), "mask": MASK}, [2])
    noise = masked_gaussian_distribution()
    with pytest.raises(ValueError, match="'state', has 2 columns, but there are 3 actions"):
        MaskedMLPModel(obs, {"actor": ["mask", "state"]}, "actor", 3, distribution_cfg=noise)
    with pytest.raises(ValueError, match="which has no mask"):
        MaskedMLPModel(obs, {"actor": ["state", "mask"]}, "actor", 3)
