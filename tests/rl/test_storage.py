"""Mini-batches of a rollout."""

import pytest
import torch
from rsl_rl.storage import RolloutStorage
from tensordict import TensorDict

from manyworlds.rl.storage import shuffled_mini_batches


@pytest.mark.parametrize("sizes", [(5, 12, 4), (7, 3, 2), (64, 1, 1)])
def test_mini_batches_equal_those_of_rsl_rl(sizes):
    """Yield the same rows in the same order, also if mini-batches leave a rest."""
    worlds, steps, mini_batches = sizes
    obs = TensorDict({"a": torch.zeros(worlds, 3), "b": torch.zeros(worlds, 2, 4, 4)}, [worlds])
    storage = RolloutStorage("rl", worlds, steps, obs, [2])
    storage.distribution_params = (torch.rand(steps, worlds, 2),)
    for name, value in vars(storage).items():
        if isinstance(value, torch.Tensor):
            setattr(storage, name, torch.rand(value.shape))
    for name, value in storage.observations.items():
        storage.observations[name] = torch.rand(value.shape)
    torch.manual_seed(1)
    own = list(shuffled_mini_batches(storage, mini_batches, 3))
    torch.manual_seed(1)
    base = list(storage.mini_batch_generator(mini_batches, 3))
    assert len(own) == len(base) == 3 * mini_batches
    for mine, theirs in zip(own, base, strict=True):
        assert vars(mine).keys() == vars(theirs).keys()
        assert (mine.observations == theirs.observations).all()
        for name, value in vars(theirs).items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(getattr(mine, name), value), name
        assert torch.equal(mine.old_distribution_params[0], theirs.old_distribution_params[0])
