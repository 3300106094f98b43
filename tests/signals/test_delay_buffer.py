"""Signals that arrive late: the right values, and lags with the right distribution."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.signals import DelayBuffer

B = 3
Rows = st.lists(st.integers(0, B - 1), unique=True)
Actions = st.lists(
    st.tuples(st.just("step"), st.just([]))
    | st.tuples(st.sampled_from(["reset", "backfill", "set_lags", "peek"]), Rows),
    max_size=30,
)


def generator(seed: int = 0) -> torch.Generator:
    """Make a seeded generator."""
    return torch.Generator().manual_seed(seed)


@given(
    st.integers(0, 2), st.integers(0, 3), st.sampled_from([0.0, 0.5]), st.integers(0, 3), Actions
)
def test_values_are_those_appended_so_long_ago(min_lag, spread, hold_prob, update_period, actions):
    """Return, by the current lags, what lists of all values hold, whatever was done between."""
    max_lag = min_lag + spread
    buffer = DelayBuffer(
        min_lag,
        max_lag,
        B,
        hold_prob=hold_prob,
        update_period=update_period,
        generator=generator(),
    )
    rows: list[list[float]] = [[] for _ in range(B)]

    def expected() -> list[float]:
        return [
            row[max(-1 - lag, -len(row))] if row else 0.0
            for row, lag in zip(rows, buffer.current_lags.tolist(), strict=True)
        ]

    for step, (kind, ids) in enumerate([("step", []), *actions], start=1):
        data = step + torch.arange(B) / 10.0
        if kind == "step":
            buffer.append(data)
            for row, number in zip(rows, data.tolist(), strict=True):
                row.append(number)
            assert buffer.compute().tolist() == expected()
        elif kind == "reset":
            buffer.reset(ids)
            for i in ids:
                rows[i] = []
        elif kind == "backfill":
            buffer.backfill(data[ids], torch.tensor(ids, dtype=torch.long))
            for i in ids:
                rows[i] = [data[i].item()]
        elif kind == "set_lags":
            before = buffer.current_lags.tolist()
            buffer.set_lags(torch.full((len(ids),), step % 7), ids)
            wanted = min(max(step % 7, min_lag), max_lag)
            assert buffer.current_lags.tolist() == [
                wanted if i in ids else lag for i, lag in enumerate(before)
            ]
        lags = buffer.current_lags
        assert ((lags >= min_lag) & (lags <= max_lag)).all()
        assert buffer.peek().tolist() == expected()
        assert torch.equal(buffer.current_lags, lags)


def computed_lags(buffer: DelayBuffer, steps: int) -> torch.Tensor:
    """Return the lags of each step, shape [steps, batch_size]."""
    lags = []
    for _ in range(steps):
        buffer.append(torch.zeros(len(buffer.current_lags)))
        buffer.compute()
        lags.append(buffer.current_lags)
    return torch.stack(lags)


def test_lags_are_uniform():
    """Draw each lag equally often, at each step and for each row."""
    lags = computed_lags(DelayBuffer(1, 4, 2000, generator=generator()), 10)
    counts = torch.bincount(lags.flatten())[1:]
    chi_square = ((counts - 5000.0) ** 2 / 5000.0).sum()
    assert len(counts) == 4
    assert chi_square < 16.27  # of 3 degrees of freedom, exceeded by chance once in a thousand
    assert abs(torch.corrcoef(lags[:2].float())[0, 1]) < 0.1


def test_a_held_lag_stays():
    """Keep lags with their probability, and always with probability one."""
    lags = computed_lags(DelayBuffer(0, 9, 5000, hold_prob=0.7, generator=generator()), 2)
    kept = (lags[0] == lags[1]).float().mean()
    assert abs(kept - (0.7 + 0.3 / 10)) < 0.02
    buffer = DelayBuffer(0, 9, 50, hold_prob=1.0, generator=generator())
    drawn = buffer.current_lags
    assert len(drawn.unique()) > 1
    assert (computed_lags(buffer, 5) == drawn).all()
    buffer.set_lags(torch.tensor(3))
    assert (computed_lags(buffer, 5) == 3).all()


def test_set_lags_last_until_lags_are_drawn():
    """Overwrite lags that were set, at the next step that draws."""
    buffer = DelayBuffer(0, 100, 50, update_period=3, per_env_phase=False, generator=generator())
    computed_lags(buffer, 1)
    buffer.set_lags(torch.full((50,), 7))
    lags = computed_lags(buffer, 3)
    assert (lags[:2] == 7).all()
    assert (lags[2] == 7).sum() < 5


def test_a_period_draws_every_so_many_steps():
    """Draw with the period, all rows at once or each from its own random step."""
    together = DelayBuffer(
        0, 10**6, 300, update_period=4, per_env_phase=False, generator=generator()
    )
    changed = computed_lags(together, 13).diff(dim=0) != 0
    assert changed.all(dim=1).nonzero().flatten().tolist() == [3, 7, 11]
    assert changed.any(dim=1).sum() == 3
    apart = DelayBuffer(0, 10**6, 300, update_period=4, generator=generator())
    changed = computed_lags(apart, 13).diff(dim=0) != 0
    assert (changed.sum(dim=0) == 3).all()
    assert ((changed.sum(dim=1) > 40) & (changed.sum(dim=1) < 110)).all()


def test_a_reset_begins_a_new_period():
    """Count the period of a row from its reset, and of the others as before."""
    buffer = DelayBuffer(0, 10**6, 2, update_period=4, per_env_phase=False, generator=generator())
    computed_lags(buffer, 3)
    buffer.reset([1])
    changed = computed_lags(buffer, 8).diff(dim=0) != 0
    assert changed[:, 0].nonzero().flatten().tolist() == [0, 4]
    assert changed[:, 1].nonzero().flatten().tolist() == [3]


def test_a_shared_lag_is_one_for_all():
    """Give all rows one lag; a partial reset leaves it alone."""
    buffer = DelayBuffer(0, 1000, 20, per_env=False, generator=generator())
    lags = computed_lags(buffer, 5)
    assert (lags == lags[:, :1]).all()
    assert len(lags[:, 0].unique()) > 1
    before = buffer.current_lags
    buffer.reset([1, 2])
    assert torch.equal(buffer.current_lags, before)
    buffer.reset()
    assert len(buffer.current_lags.unique()) == 1


def test_other_worlds_do_not_notice_a_partial_reset():
    """Give rows that are not reset the same values and lags as without it."""
    left = DelayBuffer(0, 3, 4, hold_prob=1.0, generator=generator())
    right = DelayBuffer(0, 3, 4, hold_prob=1.0, generator=generator())
    for step in range(6):
        for buffer in (left, right):
            buffer.append(torch.arange(4.0) + 10 * step)
        if step == 3:
            right.reset(torch.tensor([1]))
            right.backfill(torch.tensor([-1.0]), torch.tensor([1]))
        assert torch.equal(left.compute()[[0, 2, 3]], right.compute()[[0, 2, 3]])


def test_a_saved_buffer_goes_on_bit_for_bit():
    """Continue with the same lags and values, the generator's state included."""
    options = {"min_lag": 0, "max_lag": 5, "batch_size": 6, "hold_prob": 0.3, "update_period": 2}
    first = DelayBuffer(**options, generator=generator(1))
    for step in range(7):
        first.append(torch.arange(6.0) + 10 * step)
        first.compute()
    state = first.state_dict()
    second = DelayBuffer(**options, generator=generator(2))
    second.load_state_dict(state)
    for step in range(20):
        for buffer in (first, second):
            buffer.append(torch.arange(6.0) - step)
        assert torch.equal(first.compute(), second.compute())
        if step == 10:
            first.reset([0, 3])
            second.reset([0, 3])
        assert torch.equal(first.current_lags, second.current_lags)


def test_torch_s_own_generator_serves_without_another():
    """Follow torch's seed where no generator is given, and save no state of it."""
    torch.manual_seed(3)
    first = computed_lags(DelayBuffer(0, 50, 10), 3)
    torch.manual_seed(3)
    assert torch.equal(computed_lags(DelayBuffer(0, 50, 10), 3), first)
    assert DelayBuffer().state_dict()["_generator_state"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"min_lag": -1}, "min_lag must be >= 0, got -1"),
        ({"min_lag": 3, "max_lag": 2}, r"max_lag \(2\) must be >= min_lag \(3\)"),
        ({"hold_prob": 1.5}, r"hold_prob must be in \[0, 1\], got 1.5"),
        ({"update_period": -2}, "update_period must be >= 0, got -2"),
    ],
)
def test_bad_settings_are_named(arguments, message):
    """Say which value is out of which bound."""
    with pytest.raises(ValueError, match=message):
        DelayBuffer(**arguments)


def test_reading_needs_a_value():
    """Refuse to read before anything was appended."""
    buffer = DelayBuffer()
    assert not buffer.is_initialized
    for read in (buffer.compute, buffer.peek):
        with pytest.raises(RuntimeError, match="Buffer not initialized"):
            read()


def test_inference_mode_leaves_usable_memory():
    """Fill inside inference mode, and go on outside of it."""
    with torch.inference_mode():
        buffer = DelayBuffer(0, 2, B)
        buffer.append(torch.ones(B))
        buffer.compute()
        buffer.reset([0])
    buffer.append(torch.zeros(B))
    buffer.set_lags(torch.tensor([1, 1, 1]))
    assert buffer.peek().tolist() == [0.0, 1.0, 1.0]
