"""One regex dialect: full match, every pattern matches, no name twice."""

import pytest

from manyworlds.cli import main
from manyworlds.tasks import list_tasks
from manyworlds.validation.names import (
    _num_mistakes,
    filter_exp,
    near_names,
    resolve_expr,
    resolve_field,
    resolve_matching_names,
    resolve_matching_names_values,
)

NAMES = ("left_hip", "left_knee", "right_hip", "right_knee")


def test_selects_by_full_match_in_list_order():
    """Select whole names, ordered by position unless the patterns' order is asked for."""
    assert resolve_matching_names(".*_knee", NAMES) == ([1, 3], ["left_knee", "right_knee"])
    keys = ("right_.*", "left_hip")
    assert resolve_matching_names(keys, NAMES)[0] == [0, 2, 3]
    assert resolve_matching_names(keys, NAMES, preserve_order=True)[0] == [2, 3, 0]


def test_a_prefix_is_not_a_match():
    """Refuse a pattern that matches only the beginning of names, and name near matches."""
    with pytest.raises(ValueError, match=r"Not all regular expressions are matched.*left_kne'"):
        resolve_matching_names("left_kne", NAMES)
    with pytest.raises(ValueError, match="Did you mean 'left_knee'"):
        resolve_matching_names("left_kne", NAMES)


def test_a_name_matched_twice_is_an_error():
    """Refuse patterns that overlap."""
    with pytest.raises(ValueError, match=r"'left_hip' is matched by both 'left_.*' and '.*_hip'"):
        resolve_matching_names(("left_.*", ".*_hip"), NAMES)


def test_an_invalid_pattern_is_named():
    """Say which pattern is not a regular expression."""
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression"):
        resolve_matching_names("(", NAMES)


def test_a_table_of_values_takes_the_first_pattern_that_matches():
    """Look up values by the first matching pattern, else the default."""
    table = {"left_hip": 1.0, ".*_hip": 2.0}
    assert resolve_expr(table, NAMES, 0.0) == (1.0, 0.0, 2.0, 0.0)
    assert resolve_expr({".*": 3.0}, (), 0.0) == ()
    with pytest.raises(ValueError, match="Pattern 'elbow' matches none of"):
        resolve_expr({"elbow": 1.0}, NAMES)


def test_a_selection_with_values():
    """Select as without values, each name with the value of its pattern."""
    data = {"right_.*": 2.0, "left_hip": 1.0}
    assert resolve_matching_names_values(data, NAMES) == (
        [0, 2, 3],
        ["left_hip", "right_hip", "right_knee"],
        [1.0, 2.0, 2.0],
    )
    by_pattern = resolve_matching_names_values(data, NAMES, preserve_order=True)
    assert by_pattern == ([2, 3, 0], ["right_hip", "right_knee", "left_hip"], [2.0, 2.0, 1.0])
    with pytest.raises(TypeError, match=r"must be a dictionary, got list"):
        resolve_matching_names_values(["left_hip"], NAMES)  # pyright: ignore
    with pytest.raises(ValueError, match=r"'left_hip' is matched by both"):
        resolve_matching_names_values({".*_hip": 1, "left_.*": 2}, NAMES)
    with pytest.raises(ValueError, match="Not all regular expressions are matched"):
        resolve_matching_names_values({"elbow": 1}, NAMES)


PARTS = ("trunk", "elbow", "left/elbow", "left/hand/thumb", "right/knee", "right/hand/index")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("knee", ["right/knee"]),
        ("hand/thumb", ["left/hand/thumb"]),
        ("thumb", ["left/hand/thumb"]),
        ("kn.*|hand/.*", ["left/hand/thumb", "right/knee", "right/hand/index"]),
        ("elbow", ["elbow"]),  # a whole name goes before ends of names
        ("elb.*|knee", ["elbow"]),
        (".*/?elbow", ["elbow", "left/elbow"]),
        ("[^/]*", ["trunk", "elbow"]),
        ("(?!right/).*", ["trunk", "elbow", "left/elbow", "left/hand/thumb"]),
    ],
)
def test_names_of_attached_parts_match_without_their_prefix(pattern, expected):
    """Match ends of names that follow a slash where no whole name matches."""
    assert resolve_matching_names(pattern, PARTS)[1] == expected
    assert resolve_matching_names_values({pattern: 2.0}, PARTS)[1] == expected
    values = resolve_expr({pattern: 2.0}, PARTS, 0.0)
    assert values == tuple(2.0 if name in expected else 0.0 for name in PARTS)


@pytest.mark.parametrize("pattern", ["thumb", "th.*", "thumb|knee", "(hand/)?thumb"])
def test_ends_of_several_names_are_ambiguous(pattern):
    """List the names that an end may stand for, and how to select all of them."""
    names = (*PARTS, "right/thumb")
    for select in (resolve_matching_names, resolve_matching_names_values, resolve_expr):
        keys = pattern if select is resolve_matching_names else {pattern: 1.0}
        with pytest.raises(ValueError, match=r"'left/hand/thumb', 'right/thumb'.*'\.\*/thumb' for"):
            select(keys, names)
    assert resolve_matching_names(".*/thumb", names)[0] == [3, 6]
    assert resolve_matching_names("thumb", names[:-1])[0] == [3]


def test_a_part_may_not_be_selected_under_two_names():
    """Refuse its name with and without prefix as one name that is matched twice."""
    with pytest.raises(ValueError, match="'right/knee' is matched by both 'right/knee' and 'knee'"):
        resolve_matching_names(("right/knee", "knee"), PARTS)


def test_filtering_is_selecting():
    """Filter by the same dialect as everything else, in the order of the names."""
    assert filter_exp((".*_knee", "left_hip"), NAMES) == ("left_hip", "left_knee", "right_knee")
    with pytest.raises(ValueError, match="'left' matches none of"):
        filter_exp(["left"], NAMES)


def test_a_field_is_one_value_or_a_table():
    """Give every name the same value, or look each up."""
    assert resolve_field((1, 2), NAMES[:2]) == ((1, 2), (1, 2))
    assert resolve_field({".*_hip": 1.0}, NAMES, 0.5) == (1.0, 0.5, 1.0, 0.5)


COMMANDS = sorted(main.COMMANDS)
ROBOTS = [
    "anybotics_anymal_c",
    "boston_dynamics_spot",
    "franka_emika_panda",
    "iit_softfoot",
    "unitree_go2",
]


@pytest.mark.parametrize(
    ("wrong", "names", "near"),
    [
        *(
            (wrong, COMMANDS, [])
            for wrong in ["nosuch", "foo", "abc", "blah", "install", "quit", "open", "go"]
        ),
        ("trian", COMMANDS, ["train"]),
        ("plya", COMMANDS, ["play"]),
        ("valdate", COMMANDS, ["validate", "evaluate"]),
        ("newtask", COMMANDS, ["new-task"]),
        ("export-datset", COMMANDS, ["export-dataset"]),
        *((wrong, list_tasks(), []) for wrong in ("NoSuch", "Walk-Dog", "Pendulum", "Test")),
        ("cartpole", list_tasks(), ["Cartpole-Balance", "Cartpole-Swingup"]),
        ("Velocity-Flat-Quadrped", list_tasks(), ["Velocity-Flat-Quadruped"]),
        ("push_variant", list_tasks(), ["Push-Variants"]),
        ("Tracking-G1", list_tasks(), ["Tracking-Flat-G1", "Tracking-Flat-G1-No-State-Estimation"]),
        *((wrong, ROBOTS, []) for wrong in ("atlas", "dog", "nosuch", "arm")),
        ("spot", ROBOTS, ["boston_dynamics_spot"]),
        ("anymal", ROBOTS, ["anybotics_anymal_c"]),
        ("franka_panda", ROBOTS, ["franka_emika_panda"]),
        ("unitre_go", ROBOTS, ["unitree_go2"]),
        ("amr", ["arm", "cup", "leg"], ["arm"]),
        ("ar", ["arm", "cup", "leg"], ["arm"]),
        ("x", ["arm", "cup", "y"], []),
    ],
)
def test_near_names(wrong, names, near):
    """Suggest names that differ little, or that have the words; and nothing else."""
    assert near_names(wrong, names) == near


@pytest.mark.parametrize(
    ("wrong", "right", "mistakes"),
    [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 1), ("kitten", "sitting", 3), ("ab", "", 2)],
)
def test_mistakes(wrong, right, mistakes):
    """Count letters to insert, leave out, replace or swap, in both directions."""
    assert _num_mistakes(wrong, right) == _num_mistakes(right, wrong) == mistakes
