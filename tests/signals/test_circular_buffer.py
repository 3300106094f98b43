"""The last values of each world, against a list for each."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.signals import CircularBuffer

B = 3
Rows = st.lists(st.integers(0, B - 1), unique=True)
Actions = st.lists(
    st.just(("append",)) | st.tuples(st.sampled_from(["reset", "backfill"]), Rows), max_size=25
)


class ListBuffer:
    """The slow and obvious model: a list of values for each row."""

    def __init__(self, max_len: int) -> None:
        self.max_len = max_len
        self.rows: list[list[float]] = [[] for _ in range(B)]

    def append(self, values: list[float]) -> None:
        for row, value in zip(self.rows, values, strict=True):
            row += [value] if row else [value] * self.max_len
            del row[: -self.max_len]

    def read(self, row: int, lag: int) -> float:
        values = self.rows[row] or [0.0] * self.max_len
        return values[-1 - min(lag, self.max_len - 1)]


def value(step: int) -> torch.Tensor:
    """Return one value for each row, told apart by step and row; the second is the negative."""
    numbers = 10.0 * step + torch.arange(1.0, B + 1)
    return torch.stack([numbers, -numbers], dim=-1)


@given(st.integers(1, 4), Actions, st.lists(st.integers(0, 6), min_size=B, max_size=B))
def test_every_history_is_that_of_a_list(max_len, actions, lags):
    """Read what lists of values hold, after any appends, resets and backfills."""
    buffer, model, lengths = CircularBuffer(max_len, B, "cpu"), ListBuffer(max_len), [0] * B
    buffer.append(value(0))
    model.append(value(0)[:, 0].tolist())
    lengths = [1] * B
    for step, (kind, *arguments) in enumerate(actions, start=1):
        if kind == "append":
            buffer.append(value(step))
            model.append(value(step)[:, 0].tolist())
            lengths = [min(n + 1, max_len) for n in lengths]
        else:
            rows = arguments[0]
            ids = torch.tensor(rows, dtype=torch.long)
            for row in rows:
                model.rows[row] = []
                lengths[row] = 0
            if kind == "reset":
                buffer.reset(rows if step % 2 else ids)
            else:
                buffer.backfill(value(step)[ids], ids)
                for row in rows:
                    model.rows[row] = [value(step)[row, 0].item()] * max_len
                    lengths[row] = 1
        expected = [[model.read(r, lag) for lag in reversed(range(max_len))] for r in range(B)]
        assert buffer.buffer[..., 0].tolist() == expected
        assert torch.equal(buffer.buffer[..., 1], -buffer.buffer[..., 0])
        read = buffer[torch.tensor(lags)]
        assert read[:, 0].tolist() == [model.read(r, lag) for r, lag in enumerate(lags)]
        assert torch.equal(buffer[lags[0]], buffer[torch.full((B,), lags[0])])
        assert buffer.current_length.tolist() == lengths


def test_ids_come_in_every_form():
    """Reset by ids, a mask, a slice, or all at once."""
    for ids, kept in (
        ([0, 2], [1]),
        (torch.tensor([True, False, True]), [1]),
        (slice(1, None), [0]),
        ([], [0, 1, 2]),
        (None, []),
    ):
        buffer = CircularBuffer(2, B, "cpu")
        buffer.append(torch.ones(B))
        buffer.reset(ids)
        assert buffer[0].nonzero().flatten().tolist() == kept


def test_what_it_says_of_itself():
    """Tell sizes, device and whether anything was appended."""
    buffer = CircularBuffer(max_len=4, batch_size=2, device="cpu")
    assert (buffer.max_length, buffer.batch_size, buffer.device) == (4, 2, "cpu")
    assert not buffer.is_initialized
    buffer.append(torch.zeros(2, 5, 6, dtype=torch.uint8))
    assert buffer.is_initialized
    assert (buffer.buffer.shape, buffer.buffer.dtype) == ((2, 4, 5, 6), torch.uint8)


def test_wrong_use_is_refused():
    """Name what is wrong, with the value and the bound."""
    with pytest.raises(ValueError, match="max_len must be >= 1, got 0"):
        CircularBuffer(0, B, "cpu")
    buffer = CircularBuffer(2, B, "cpu")
    with pytest.raises(RuntimeError, match="empty buffer"):
        _ = buffer.buffer
    with pytest.raises(RuntimeError, match="empty buffer"):
        _ = buffer[0]
    with pytest.raises(RuntimeError, match="Cannot backfill an empty buffer"):
        buffer.backfill(torch.zeros(1, 2), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"takes data of shape \(3, 2\), got \(4, 2\)"):
        buffer.append(torch.zeros(B + 1, 2))
    buffer.append(torch.zeros(B, 2))
    with pytest.raises(ValueError, match=r"takes data of shape \(3, 2\), got \(3, 5\)"):
        buffer.append(torch.zeros(B, 5))
    with pytest.raises(ValueError, match=r"takes data of shape \(1, 2\), got \(2, 2\)"):
        buffer.backfill(torch.zeros(2, 2), torch.tensor([0]))
    with pytest.raises(ValueError, match=r"or have shape \(3,\), got \(2,\)"):
        _ = buffer[torch.tensor([0, 1])]


@pytest.mark.parametrize("appended_before", [False, True])
def test_a_saved_buffer_goes_on(appended_before):
    """Continue alike from a saved state, in a fresh buffer and in a used one, sharing nothing."""
    first, second = CircularBuffer(3, B, "cpu"), CircularBuffer(3, B, "cpu")
    empty = first.state_dict()
    for step in range(5):
        first.append(value(step))
    first.reset([1])
    if appended_before:
        second.append(value(9))
    state = first.state_dict()
    second.load_state_dict(state)
    for buffer in (first, second):
        buffer.append(value(7))
    assert torch.equal(first.buffer, second.buffer)
    third = CircularBuffer(3, B, "cpu")
    third.load_state_dict(state)
    assert third.buffer[:, :, 0].tolist() == [[21.0, 31.0, 41.0], [0.0] * 3, [23.0, 33.0, 43.0]]
    third.load_state_dict(empty)
    assert not third.is_initialized


def test_inference_mode_leaves_usable_memory():
    """Fill inside inference mode, and go on outside of it."""
    with torch.inference_mode():
        buffer = CircularBuffer(2, B, "cpu")
        buffer.append(torch.ones(B))
    buffer.append(torch.zeros(B))
    buffer.reset([0])
    assert buffer[1].tolist() == [0.0, 1.0, 1.0]
