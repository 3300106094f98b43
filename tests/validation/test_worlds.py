"""World ids in every form that users pass."""

import functools

import numpy as np
import pytest
import torch

from manyworlds.validation.worlds import Worlds, as_index, assign, takes_worlds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        (slice(None), None),
        (slice(1, 3), [1, 2]),
        ([3, 1, 1], [1, 3]),
        (torch.tensor([2, 0]), [0, 2]),
        (np.array([True, False, True, False]), [0, 2]),
        (torch.ones(4, dtype=torch.bool), None),
        ([0, 1, 2, 3], None),
        ([], []),
    ],
)
def test_every_form_becomes_sorted_unique_ids(given, expected):
    """Sort ids, drop repeats, and turn 'all worlds' into None."""
    worlds = Worlds(given, 4).ascending
    ids = worlds.host_ids_or_none
    assert worlds.is_all == (expected is None)
    assert (ids if ids is None else ids.tolist()) == expected
    assert worlds.host_ids.dtype == np.int64
    assert worlds.ascending is worlds


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [0, 1, 2, 3]),
        (slice(1, 9), [1, 2, 3]),
        (slice(-2, None), [2, 3]),
        (slice(None, None, -1), [3, 2, 1, 0]),
        (slice(3, 1), []),
        ([3, 1, 1], [3, 1, 1]),
        (torch.tensor([2, 0], dtype=torch.int32), [2, 0]),
        (torch.tensor([True, False, True, False]), [0, 2]),
        (np.array([False, True, True, True]), [1, 2, 3]),
        (np.zeros(0, np.int64), []),
    ],
)
def test_every_view_names_the_same_worlds(given, expected):
    """Keep the order of ids in each form that is asked for."""
    of = [Worlds(given, 4, "cpu") for _ in range(7)]
    everything, each = torch.arange(4), np.arange(4)
    assert of[0].ids.tolist() == expected and of[0].ids.dtype == torch.int64
    assert of[1].host_ids.tolist() == expected
    assert everything[of[2].rows].tolist() == expected
    assert each[of[3].host_rows].tolist() == expected
    assert everything[of[4].mask].tolist() == sorted(set(expected))
    assert len(of[5]) == len(expected) and bool(of[5]) == bool(expected)
    assert of[6].ascending.host_ids.tolist() == sorted(set(expected))
    assert Worlds.of(of[0], 4) is of[0]


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_worlds_are_put_together(kind):
    """Join ids, maybe repeated; all worlds and some are all."""
    some, more = Worlds(kind([2, 0]), 4), Worlds(kind([1, 2]), 4)
    assert some.union(more).host_ids.tolist() == [2, 0, 1, 2]
    assert some.union(some) is some
    assert some.union(Worlds(None, 4)).union(more).is_all


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([4], r"World id 4 is out of range: there are 4 worlds, so ids must be in \[0, 4\)"),
        ([-1, 2], "World id -1 is out of range"),
        (np.array([True]), r"must have shape \(4,\), got \(1,\)"),
        ([0.5], "must be integers, got float64"),
    ],
)
def test_bad_ids_are_named(given, message):
    """Name the id, the bound and the remedy."""
    with pytest.raises(ValueError, match=message):
        Worlds(given, 4)


def test_contiguous_positions_become_a_slice():
    """Index with a view where that is possible."""
    assert as_index([2, 3, 4]) == slice(2, 5)
    assert isinstance(as_index([2, 4]), torch.Tensor)


@pytest.mark.parametrize(
    "mask", [[False, True, True], np.array([0, 1, 1], bool), torch.tensor([False, True, True])]
)
def test_masks_over_positions_select_what_is_true(mask):
    """Take booleans for a mask, not for the numbers 0 and 1."""
    assert as_index(mask, 3) == slice(1, 3)


def test_positions_from_the_end_are_no_slice():
    """Index by -1 rather than by an empty slice."""
    assert torch.arange(3)[as_index([-1])].tolist() == [2]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 3], r"Id 3 is out of range: there are 3 elements, so ids must be in \[0, 3\)"),
        (torch.tensor([-1]), "Id -1 is out of range"),
        ([True], "A mask over 3 elements has 1 values"),
        ("hip", "must be a list of integers or a mask, got 'hip'"),
        (1, "must be a list of integers or a mask, got 1"),
    ],
)
def test_bad_positions_are_named(ids, message):
    """Refuse what would select nothing, or something else."""
    with pytest.raises(ValueError, match=message):
        as_index(ids, 3)


def test_assign_takes_arrays_of_any_precision():
    """Write NumPy's float64 to contiguous columns and to others."""
    for columns in (slice(0, 2), torch.tensor([0, 2])):
        target = torch.zeros(3, 4)
        assign(target, np.full((3, 2), 2.0), None, columns)
        assert target[:, columns].eq(2.0).all() and target.sum() == 12.0
    with pytest.raises(ValueError, match="World ids must be one-dimensional"):
        assign(target, 1.0, torch.tensor(1))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([-1], "World id -1 is out of range"),
        (np.array([0, 3]), "World id 3 is out of range"),
        (torch.tensor([0.7]), "must be integers, got float32"),
        ([True], r"must have shape \(3,\), got \(1,\)"),
        ([[0, 1]], "must be one-dimensional"),
    ],
)
def test_bad_rows_are_written_nowhere(rows, message):
    """Refuse ids that torch would count from the end, round, or take for part of a mask."""
    target = torch.zeros(3, 4)
    for write in (lambda: assign(target, 1.0, rows), lambda: Worlds(rows, 3)):
        with pytest.raises(ValueError, match=message):
            write()
    assert not target.any()


def test_bytes_are_ids_and_no_mask():
    """Read bytes everywhere as ids, which torch takes for a mask in some places."""
    rows = Worlds(torch.tensor([2, 0], dtype=torch.uint8), 3).rows
    assert torch.arange(3)[rows].tolist() == [2, 0]


def test_assign_writes_the_outer_product():
    """Write rows times columns, as two lists of ids mean."""
    target = torch.zeros(3, 4)
    assign(target, 1.0, torch.tensor([0, 2]), torch.tensor([1, 3]))
    assert target.nonzero().tolist() == [[0, 1], [0, 3], [2, 1], [2, 3]]
    assign(target, 0.0, torch.tensor([True, False, False]))
    assert target[0].sum() == 0 and target[2].sum() == 2


MASKS = [[], [1], [0, 2, 3], [0, 1, 2, 3]]


def both_forms(ids: list[int]) -> tuple[Worlds, Worlds]:
    """Name worlds among four by ids, and by a mask."""
    mask = torch.zeros(4, dtype=torch.bool)
    mask[ids] = True
    return Worlds(ids, 4), Worlds.masked(mask)


@pytest.mark.parametrize("ids", MASKS)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("value", ["rows", 2.5])
def test_a_mask_writes_what_ids_write(ids, dim, value):
    """Take rows, change and write them: the same in both forms, and nothing in other worlds."""
    start = torch.randn(4, 4, 3)
    results = []
    for worlds in both_forms(ids):
        target = start.clone()
        new = value
        if value == "rows":
            new = worlds.take(target, dim) * 2.0 + 1.0
        worlds.put(target, new, dim)
        results.append(target)
        assert worlds.take(start, dim).shape[dim] == worlds.num_rows
    assert torch.equal(*results)
    others = [world for world in range(4) if world not in ids]
    assert torch.equal(
        results[1].index_select(dim, torch.tensor(others, dtype=torch.long)),
        start.index_select(dim, torch.tensor(others, dtype=torch.long)),
    )


@pytest.mark.parametrize("ids", MASKS)
@pytest.mark.parametrize("columns", [slice(1, 3), torch.tensor([2, 0])])
def test_a_mask_assigns_what_ids_assign(ids, columns):
    """Write an outer product of worlds and columns, from rows of all worlds or from theirs."""
    start = torch.randn(4, 3, 2)
    values = torch.randn(4, 2, 2)
    results = []
    for worlds in both_forms(ids):
        target = start.clone()
        assign(target, worlds.take(values), worlds, columns)
        results.append(target)
    assert torch.equal(*results)


@pytest.mark.parametrize("ids", MASKS)
def test_statistics_of_a_mask_are_those_of_ids(ids):
    """Leave other worlds out of sums and means, also where there is none."""
    rows = torch.arange(12.0).view(4, 3) ** 2
    rows[:, 0] = torch.nan  # of worlds that do not count
    rows[ids, 0] = 1.0
    some, masked = both_forms(ids)
    assert torch.equal(some.sum(rows), masked.sum(rows))
    assert torch.allclose(some.mean(rows), masked.mean(rows), equal_nan=True)
    assert torch.equal(some.take_or_nan(rows).nansum(0), masked.take_or_nan(rows).nansum(0))
    assert torch.equal(some.sum(rows.T, dim=1), masked.sum(rows.T, dim=1))


@pytest.mark.parametrize("first", MASKS)
@pytest.mark.parametrize("second", MASKS)
def test_masks_are_put_together_and_taken_apart(first, second):
    """Unite worlds and leave some out, in every mix of forms."""
    for a in both_forms(first):
        for b in both_forms(second):
            assert sorted(set(a.union(b).ids.tolist())) == sorted({*first, *second})
            left = a.without(b)
            ids = left.ids.tolist() if left is not None else []
            assert ids == sorted({*first} - {*second})
        chosen = a.where(a.take(both_forms(second)[1].mask))
        assert chosen.ids.tolist() == sorted({*first} & {*second})


def test_terms_are_given_the_form_that_they_take():
    """Give ids, a mask or worlds to functions and objects, and call none that has no world."""

    def by_ids(env, env_ids):
        """Take ids."""

    def by_mask(env, env_mask, factor=1.0):
        """Take a mask."""

    class Term:
        @takes_worlds
        def __call__(self, env, env_ids):
            """Take any form."""

        def reset(self, env_ids):
            """Take ids."""

    class Own(Term):
        def __call__(self, env, env_ids):
            """Take ids, unlike the base."""

    some, masked = both_forms([0, 2])
    empty = both_forms([])[1]
    every = Worlds(None, 4)
    assert masked.for_term(by_ids).tolist() == [0, 2] and every.for_term(by_ids) is None
    assert every.for_call(by_ids).tolist() == [0, 1, 2, 3]
    assert masked.for_term(functools.partial(by_mask, factor=2.0)) is masked.mask
    assert some.for_term(by_mask).tolist() == [True, False, True, False]
    assert every.for_call(by_mask).all()
    assert masked.for_term(Term()) is masked and some.for_term(Term()) is some
    assert masked.for_term(Term().reset).tolist() == [0, 2]
    assert masked.for_term(Own()).tolist() == [0, 2]
    assert empty.for_call(by_ids) is None and empty.for_call(Own()) is None
    assert empty.for_call(by_mask) is empty.mask and empty.for_call(Term()) is empty
