"""Networks that all joints share."""

import onnxruntime
import pytest
import torch
from tensordict import TensorDict

from manyworlds.envs.mdp import JOINT_TOKEN_SIZE
from manyworlds.rl.config import masked_gaussian_distribution
from manyworlds.rl.joint_network import JointActorModel, JointCriticModel

GROUPS = {"actor": ["state", "joints"], "critic": ["state", "joints"]}


def observe(num_joints: int, padded: int = 0, worlds: int = 3, seed: int = 0) -> TensorDict:
    """Return observations of robots with some joints, and zeros for padded ones."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(worlds, num_joints, JOINT_TOKEN_SIZE, generator=generator)
    tokens[..., 0] = 1.0
    tokens = torch.nn.functional.pad(tokens, (0, 0, 0, padded))
    state = torch.randn(worlds, 5, generator=generator)
    return TensorDict({"state": state, "joints": tokens}, [worlds])


def make_actor(num_joints: int, **settings) -> JointActorModel:
    """Make a policy."""
    settings = {
        "hidden_dims": (8, 16),
        "distribution_cfg": masked_gaussian_distribution(shared_std=True),
        "obs_normalization": True,
        **settings,
    }
    return JointActorModel(observe(num_joints), GROUPS, "actor", num_joints, **settings)


def make_critic(num_joints: int) -> JointCriticModel:
    """Make a value network."""
    obs = observe(num_joints)
    return JointCriticModel(obs, GROUPS, "critic", 1, hidden_dims=(8, 16), obs_normalization=True)


@pytest.mark.parametrize("make", [make_actor, make_critic])
def test_padding_has_no_influence(make):
    """Compute the same for a robot alone and padded, and no gradient for what pads it."""
    small = make(3)
    large = make(7)
    small.update_normalization(observe(3, worlds=50, seed=1))
    large.update_normalization(observe(3, padded=4, worlds=50, seed=1))
    weights = small.state_dict()
    for name, value in large.state_dict().items():
        if "normalizer" in name:
            assert torch.equal(value, weights[name])
    large.load_state_dict(weights)
    obs = observe(3, padded=4)
    obs["joints"].requires_grad_(True)
    alone = small(observe(3))
    padded = large(obs)
    assert torch.allclose(padded[:, : alone.shape[1]], alone, atol=1e-6)
    assert not padded[:, alone.shape[1] :].any()
    padded.sum().backward()
    gradient = obs["joints"].grad
    assert gradient is not None
    assert gradient[:, :3, 1:].any() and not gradient[:, 3:, 1:].any()


def test_joints_in_another_order_have_their_actions_in_that_order():
    """Give each joint the action that follows from all joints, wherever its token stands."""
    actor = make_actor(5)
    obs = observe(5)
    order = torch.tensor([3, 0, 4, 1, 2])
    other = TensorDict({"state": obs["state"], "joints": obs["joints"][:, order]}, [3])
    assert torch.allclose(actor(other), actor(obs)[:, order], atol=1e-6)
    critic = make_critic(5)
    assert torch.allclose(critic(other), critic(obs), atol=1e-6)
    changed = obs.clone()
    changed["joints"][:, 4, 12] += 1.0
    assert not torch.allclose(actor(changed)[:, 0], actor(obs)[:, 0], atol=1e-6)


def test_one_deviation_is_shared():
    """Keep one parameter of noise, whatever the number of joints."""
    actor = make_actor(4)
    actor(observe(3, padded=1), stochastic_output=True)
    assert actor.distribution is not None and actor.output_std.shape == (3, 4)
    assert actor.get_parameter("distribution.std_param").shape == (1,)
    assert not actor.output_std[:, 3].any()


def test_an_export_drives_robots_with_other_numbers_of_joints(tmp_path):
    """Run a policy made for 4 joints on robots with 2 and 9, as the network itself does."""
    actor = make_actor(4)
    actor.update_normalization(observe(4, worlds=50, seed=1))
    model = actor.as_onnx()
    path = tmp_path / "policy.onnx"
    torch.onnx.export(
        model,
        model.get_dummy_inputs(),
        str(path),
        opset_version=18,
        dynamo=False,
        input_names=model.input_names,
        output_names=model.output_names,
        dynamic_axes={
            "obs": {0: "batch"},
            "joints": {0: "batch", 1: "joints"},
            "actions": {0: "batch", 1: "joints"},
        },
    )
    session = onnxruntime.InferenceSession(str(path))
    for obs in (observe(2), observe(9), observe(3, padded=2, worlds=1)):
        feed = {"obs": obs["state"].numpy(), "joints": obs["joints"].numpy()}
        (actions,) = session.run(None, feed)
        assert torch.allclose(torch.from_numpy(actions), actor(obs), atol=1e-5)


def test_wrong_settings_are_named():
    """Refuse other groups, numbers of actions, distributions and sizes of layers."""
    obs = observe(4)
    noise = masked_gaussian_distribution(shared_std=True)
    with pytest.raises(ValueError, match="has tokens of 4 joints, but there are 3 actions"):
        JointActorModel(obs, GROUPS, "actor", 3, distribution_cfg=noise)
    with pytest.raises(ValueError, match="reads one group of tokens"):
        JointCriticModel(obs, {"critic": ["state"]}, "critic", 1)
    with pytest.raises(ValueError, match="is a GaussianDistribution, which counts"):
        make_actor(4, distribution_cfg={"class_name": "GaussianDistribution"})
    with pytest.raises(ValueError, match="at least one size of the decoder"):
        make_actor(4, hidden_dims=(8,))
    with pytest.raises(ValueError, match="at least one size of the decoder"):
        JointCriticModel(obs, GROUPS, "critic", 1, hidden_dims=(8,))
