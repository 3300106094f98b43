"""Convolutions that tell where something is."""

import pytest
import torch
from tensordict import TensorDict

from manyworlds.rl.config import (
    SPATIAL_SOFTMAX_CNN,
    RslRlModelCfg,
    RslRlOnPolicyRunnerCfg,
    runner_settings,
)
from manyworlds.rl.spatial_softmax import SpatialSoftmax, SpatialSoftmaxCNN, SpatialSoftmaxCNNModel

CNN = {"output_channels": (4, 6), "kernel_size": 3, "stride": 2}


def test_a_peak_is_found_where_it_is():
    """Return x and y of a bright pixel, and the middle for a flat image."""
    images = torch.zeros(1, 3, 5, 9)
    images[0, 0, 0, 8] = images[0, 1, 4, 2] = 1000.0
    found = SpatialSoftmax(5, 9)(images)
    expected = torch.tensor([[1.0, -1.0, -0.5, 1.0, 0.0, 0.0]])
    assert torch.allclose(found, expected, atol=1e-6)


def test_temperature_blurs():
    """Move towards the middle as the temperature rises."""
    image = torch.zeros(1, 1, 4, 4)
    image[0, 0, 0, 0] = 5.0
    x = [SpatialSoftmax(4, 4, temperature=t)(image)[0, 0].item() for t in (0.1, 1.0, 10.0)]
    assert -1.0 <= x[0] < x[1] < x[2] < 0.0


@pytest.mark.parametrize("padding", ["none", "zeros"])
def test_outputs_are_two_for_each_channel(padding):
    """Know the number of outputs, whatever the size of the last image."""
    cnn = SpatialSoftmaxCNN((13, 17), 3, padding=padding, **CNN)
    assert cnn(torch.rand(2, 3, 13, 17)).shape == (2, cnn.output_dim) == (2, 12)
    assert cnn.output_channels is None


def make_model(cnn_cfg, **kwargs) -> SpatialSoftmaxCNNModel:
    """Make a model of a vector and an image."""
    obs = TensorDict({"state": torch.rand(2, 5), "image": torch.rand(2, 3, 16, 16)}, [2])
    groups = {"actor": ["state", "image"]}
    return SpatialSoftmaxCNNModel(obs, groups, "actor", 4, cnn_cfg, hidden_dims=[8], **kwargs)


def test_the_model_can_be_exported_and_shared(tmp_path):
    """Compute the same actions through ONNX's wrapper, also with another model's convolutions."""
    first = make_model({**CNN, "spatial_softmax_temperature": 0.5})
    softmax = first.get_submodule("cnns.image.spatial_softmax")
    assert isinstance(softmax, SpatialSoftmax) and softmax.temperature == 0.5
    second = make_model(None, cnns=first.cnns)
    obs = TensorDict({"state": torch.rand(2, 5), "image": torch.rand(2, 3, 16, 16)}, [2])
    for model in (first, second):
        wrapped = model.as_onnx()
        assert torch.allclose(model(obs), wrapped(obs["state"], obs["image"]))


def test_plain_convolutions_can_be_asked_for():
    """Leave the softmax out for `spatial_softmax=False`, and take it for True."""
    assert isinstance(
        make_model({**CNN, "spatial_softmax": True}).get_submodule("cnns.image"), SpatialSoftmaxCNN
    )
    plain = make_model({**CNN, "spatial_softmax": False}).get_submodule("cnns.image")
    assert plain(torch.rand(2, 3, 16, 16)).shape == (2, 6 * 3 * 3)


def test_wrong_settings_are_named():
    """Refuse missing settings, and settings of other groups."""
    with pytest.raises(ValueError, match="CNN configurations must be provided"):
        make_model(None)
    with pytest.raises(ValueError, match=r"cnn_cfg has \['other'\], the groups are \['image'\]"):
        make_model({"other": CNN})


def test_settings_are_copied_for_rsl_rl():
    """Leave out what a network has not, and never touch the user's configuration."""
    cfg = RslRlOnPolicyRunnerCfg()
    cfg.actor = RslRlModelCfg(class_name=SPATIAL_SOFTMAX_CNN, cnn_cfg=CNN)
    settings = runner_settings(cfg)
    assert settings["actor"]["cnn_cfg"] == CNN and "cnn_cfg" not in settings["critic"]
    assert not {"rnn_type", "rnn_hidden_dim", "rnn_num_layers"} & set(settings["actor"])
    settings["actor"]["cnn_cfg"]["kernel_size"] = 9
    assert CNN["kernel_size"] == 3
    plain = {"obs_groups": {"actor": ["a"]}}
    runner_settings(plain)["obs_groups"]["actor"].append("b")
    assert plain == {"obs_groups": {"actor": ["a"]}}
    cfg.critic.rnn_type = "gru"
    with pytest.raises(ValueError, match=r"critic.rnn_type is 'gru', but critic.class_name"):
        runner_settings(cfg)
