"""Random numbers keyed by world: SplitMix64's, alike in every batch and on every device."""

from __future__ import annotations

import hashlib
import math

import numpy as np
import pytest
import torch

from manyworlds.utils import world_random
from manyworlds.utils.world_random import RandomStream, WorldRandom

WORD = 2**64


def mix(value: int) -> int:
    """Return SplitMix64's output function, in plain integers."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % WORD
    return value ^ (value >> 31)


def plain(seed: int, name: str, world: int, number: int) -> float:
    """Return one number of a world's stream, counted from 1."""
    golden = 0x9E3779B97F4A7C15
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    key = mix((mix(seed % WORD) + int.from_bytes(digest, "little")) % WORD)
    key = mix((key + (world + 1) * golden) % WORD)
    return (mix((key + number * golden) % WORD) >> 40) / 2**24


def stream(num_envs: int = 8, seed: int = 3, first_world: int = 0) -> RandomStream:
    """Return a stream of a batch."""
    ids = range(first_world, first_world + num_envs)
    return WorldRandom(num_envs, "cpu", seed, ids).stream("events/push")


@pytest.mark.parametrize("seed", [0, 3, -1, 2**63 - 1, -(2**63)])
def test_numbers_are_those_of_splitmix64(seed):
    """Draw what the published function gives, in the order of each world's draws."""
    found = WorldRandom(3, "cpu", seed).stream("noise")
    first = found.uniform(shape=(2,))
    second = found.uniform(shape=(2, 2), env_ids=torch.tensor([0, 2]))
    third = found.uniform(shape=(1,))
    for world in range(3):
        rows = [*first[world].tolist()]
        if world != 1:
            rows += second[world // 2].flatten().tolist()
        rows += third[world].tolist()
        assert rows == [plain(seed, "noise", world, i + 1) for i in range(len(rows))]


@pytest.mark.parametrize("count", [1, 3, 50, 2**14 + 7])
def test_both_devices_draw_the_same(count):
    """Make equal numbers with NumPy and with PyTorch, which has no unsigned integers."""
    few = stream(40)
    start = few.states.clone()
    assert torch.equal(few.uniform(shape=(count,)), world_random._unit_on_device(start, count))
    assert torch.equal(few.uniform(shape=(0,)), torch.zeros(40, 0))


def test_streams_move_alike_on_both_devices():
    """Draw for all worlds, some and a mask, one after the other: equal with NumPy and PyTorch."""
    one = stream()
    other = stream()
    other._host = None  # as on a GPU
    mask = torch.arange(8) % 3 == 0
    for env_ids in (None, torch.tensor([1, 6]), mask, None, torch.tensor([0]), None):
        drawn = one.uniform(shape=(2, 3), env_ids=env_ids)
        assert torch.equal(drawn, other.uniform(shape=(2, 3), env_ids=env_ids))
        assert torch.equal(one.states, other.states)


DRAWS = {
    "uniform": lambda s, ids: s.uniform(-1.0, 2.0, (3, 2), ids),
    "log_uniform": lambda s, ids: s.log_uniform(0.1, 10.0, (7,), ids),
    "normal": lambda s, ids: s.normal(1.0, torch.tensor([1.0, 2.0, 3.0]), (3,), ids),
    "integers": lambda s, ids: s.integers(-2, 5, (4,), ids),
    "choice": lambda s, ids: s.choice(torch.tensor([1.0, 0.0, 2.0]), ids),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("num_envs", [1, 7, 8, 64, 1000, 8192])
def test_a_world_is_the_same_in_every_batch(draw, num_envs):
    """Draw in batches of any size, for all worlds and for some: each world has its own numbers."""
    many = stream(num_envs)
    every = torch.cat(
        [
            draw(many, None).flatten(1 if draw(stream(1), None).ndim > 1 else 0)[None]
            for _ in range(2)
        ]
    )
    for world in {0, num_envs // 2, num_envs - 1}:
        alone = stream(1, first_world=world)
        some = stream(num_envs)
        ids = torch.tensor([world])
        for step in range(2):
            assert torch.equal(draw(alone, None).flatten(), every[step, world].flatten())
            assert torch.equal(draw(some, ids).flatten(), every[step, world].flatten())


def test_streams_are_independent():
    """Move one stream: neither other streams nor other worlds notice."""
    random = WorldRandom(4, "cpu", seed=5)
    random.stream("a").uniform(shape=(100,), env_ids=torch.tensor([1, 2]))
    fresh = WorldRandom(4, "cpu", seed=5)
    assert torch.equal(random.stream("b").uniform(), fresh.stream("b").uniform())
    rows = torch.equal, random.stream("a").uniform(), fresh.stream("a").uniform()
    assert (rows[1] == rows[2]).tolist() == [True, False, False, True]


def test_draws_that_concern_some_worlds_alone():
    """Draw for all worlds, where only some use their numbers: the others do not move."""
    random = WorldRandom(8, "cpu", seed=3)
    first = random.stream("events/push")
    shared = random.stream("clock", shared=True)
    mask = torch.arange(8) % 3 == 0
    with random.only(mask):
        drawn = first.uniform(shape=(2,))
        first.uniform(env_ids=torch.tensor([0, 1]))
        assert shared.uniform().shape == (1,)
    assert torch.equal(drawn, stream().uniform(shape=(2,)))
    golden = 0x9E3779B97F4A7C15
    moved = (first.states - stream().states).numpy().view(np.uint64)
    assert moved.tolist() == [count * golden % WORD for count in (3, 0, 0, 2, 0, 0, 2, 0)]
    begun = WorldRandom(8, "cpu", seed=3).stream("clock", shared=True)
    assert torch.equal(begun.uniform(shape=(2,))[:, 1:], shared.uniform(shape=(1,)))


def test_shared_numbers_are_those_of_every_batch():
    """Share numbers between worlds: they are the same in every batch, and saved as shared."""
    random = WorldRandom(6, "cpu", seed=3, world_ids=range(4, 10))
    drawn = random.stream("clock", shared=True).uniform(shape=(3,))
    alone = WorldRandom(1, "cpu", seed=3)
    assert torch.equal(alone.stream("clock", shared=True).uniform(shape=(3,)), drawn)
    alone.load_state_dict(random.state_of_world(2, 6))
    assert torch.equal(
        alone.stream("clock", shared=True).uniform(), random.stream("clock", shared=True).uniform()
    )


def test_a_state_continues():
    """Save and load: streams continue, those that were not saved begin again, a seed restarts."""
    random = WorldRandom(4, "cpu", seed=5, world_ids=range(10, 14))
    random.stream("a").uniform(shape=(3,))
    state = random.state_dict()
    expected = random.stream("a").normal(shape=(2,))
    other = WorldRandom(4, "cpu")
    other.stream("a").uniform()
    other.stream("b").uniform()
    other.load_state_dict(state)
    assert torch.equal(other.stream("a").normal(shape=(2,)), expected)
    assert torch.equal(other.stream("b").uniform(), random.stream("b").uniform())
    other.reseed(5)
    assert torch.equal(other.stream("a").uniform(shape=(3,)), stream_of(5, 10).uniform(shape=(3,)))


def stream_of(seed: int, first_world: int) -> RandomStream:
    """Return the stream `a` of four worlds."""
    return WorldRandom(4, "cpu", seed, range(first_world, first_world + 4)).stream("a")


def test_the_state_of_one_world_continues_alone():
    """Load one world's state into a batch of one: it draws as in the batch."""
    random = WorldRandom(6, "cpu", seed=5)
    random.stream("a").uniform(shape=(3,), env_ids=torch.tensor([1, 4]))
    alone = WorldRandom(1, "cpu", seed=9)
    alone.load_state_dict(random.state_of_world(4, 6))
    assert alone.world_ids.tolist() == [4]
    assert torch.equal(alone.stream("a").uniform(), random.stream("a").uniform()[4:5])


def test_distributions():
    """Draw with the moments and the bounds of each distribution, without correlations."""
    many = WorldRandom(4096, "cpu", seed=7).stream("a")
    count = 4096 * 32
    unit = many.uniform(shape=(32,))
    assert unit.min() >= 0.0 and unit.max() < 1.0
    shares = torch.histc(unit, 64, 0.0, 1.0)
    # Chi-square of 63 degrees of freedom: above 104 once in a thousand times.
    assert (((shares - count / 64) ** 2) / (count / 64)).sum() < 104.0
    for one, other in ((unit[:, :-1], unit[:, 1:]), (unit[:-1], unit[1:])):
        pair = torch.stack([one.flatten(), other.flatten()])
        assert abs(float(torch.corrcoef(pair)[0, 1])) < 4.0 / math.sqrt(count)
    normal = many.normal(shape=(31,))
    assert abs(float(normal.mean())) < 4.0 / math.sqrt(normal.numel())
    assert abs(float(normal.var()) - 1.0) < 4.0 * math.sqrt(2.0 / normal.numel())
    assert abs(float((normal**4).mean()) - 3.0) < 4.0 * math.sqrt(96.0 / normal.numel())
    assert normal.isfinite().all()
    log = many.log_uniform(1e-3, 1e3, (8,)).log10()
    assert log.min() > -3.001 and log.max() < 3.001 and abs(float(log.mean())) < 0.05
    integers = many.integers(-1, 2, (16,))
    assert integers.unique().tolist() == [-1, 0, 1]
    choice = many.choice(torch.tensor([1.0, 0.0, 3.0, 0.0]))
    found = torch.bincount(choice, minlength=4) / len(choice)
    assert found[1] == 0.0 and found[3] == 0.0 and abs(float(found[2]) - 0.75) < 0.03


def test_choices_with_weights_of_each_world():
    """Choose with a row of weights for each world."""
    few = stream(3)
    weights = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert few.choice(weights).tolist() == [0, 1, 0]
    assert few.choice(weights[1:2], torch.tensor([1])).tolist() == [1]


def test_bits_of_neighbors_differ():
    """Flip a bit of the counter, or go to the next world: half of the bits change."""
    start = np.arange(4096, dtype=np.uint64)
    for step in (1, 2, 64, 4096):
        one = world_random._mixed(start * np.uint64(0x9E3779B97F4A7C15))
        other = world_random._mixed((start + np.uint64(step)) * np.uint64(0x9E3779B97F4A7C15))
        changed = np.unpackbits((one ^ other).view(np.uint8)).mean()
        assert abs(changed - 0.5) < 0.005
