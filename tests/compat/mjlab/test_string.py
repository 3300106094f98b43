"""Names of code: found by import, never by running text."""

import functools
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyworlds.compat.mjlab.facades.utils.lab_api import string as lab_string
from manyworlds.compat.mjlab.facades.utils.lab_api.string import (
    callable_to_string,
    is_lambda_expression,
    string_to_callable,
    string_to_slice,
    to_camel_case,
    to_snake_case,
)
from manyworlds.utils.state import Stateful
from manyworlds.validation import names


@pytest.mark.parametrize("value", [math.sqrt, re.compile, Stateful, Stateful.state_dict])
def test_functions_are_found_by_their_names(value):
    """Come back to the same object, methods included."""
    assert string_to_callable(callable_to_string(value)) is value


def test_the_name_is_module_and_name():
    """Write 'module:name'."""
    assert callable_to_string(math.sqrt) == "math:sqrt"


@pytest.mark.parametrize("value", [lambda x: x, functools.partial(max, 1), 3])
def test_what_has_no_name_is_refused(value):
    """Refuse lambdas, partial functions and data."""
    with pytest.raises(ValueError, match="cannot be found by its name"):
        callable_to_string(value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lambda x: x", "code in a text never runs"),
        ("lambda:os", "code in a text never runs"),
        ("__import__('os').getcwd()", "code in a text never runs"),
        ("math.sqrt", "write 'module:name'"),
        ("no_such_module:f", "cannot be found: No module named"),
        ("math:pi", "'math:pi' is not callable, but float"),
    ],
)
def test_what_names_nothing_is_refused(name, message):
    """Refuse code, unknown modules and data."""
    with pytest.raises(ValueError, match=re.escape(message)):
        string_to_callable(name)


def test_a_missing_attribute_is_named():
    """Say what the module lacks."""
    with pytest.raises(AttributeError, match="no_such_function"):
        string_to_callable("math:no_such_function")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("lambda x: x + 1", True), (" lambda: 0 ", True), ("f(lambda: 0)", False), ("1 +", False)],
)
def test_lambdas_are_told_from_other_text(text, expected):
    """Recognise only a text that is a lambda as a whole."""
    assert is_lambda_expression(text) is expected


@given(*[st.none() | st.integers(-99, 99)] * 3)
def test_slices_come_back_from_their_text(start, stop, step):
    """Read what `repr` writes."""
    assert string_to_slice(repr(slice(start, stop, step))) == slice(start, stop, step)


@pytest.mark.parametrize("text", ["1:2", "slice(1)", "slice(1, x, None)", "slice(1, 2, 3)()"])
def test_other_text_is_no_slice(text):
    """Refuse everything else."""
    with pytest.raises(ValueError, match="is not a slice"):
        string_to_slice(text)


def test_cases():
    """Turn names from one case into the other."""
    assert to_camel_case("joint_pos_limit") == "jointPosLimit"
    assert to_camel_case("joint_pos", to="CC") == "JointPos"
    assert to_snake_case("jointPosLimit") == "joint_pos_limit"
    assert to_snake_case("HTTPServerV2Cfg") == "http_server_v2_cfg"
    with pytest.raises(ValueError, match="no convention 'snake'"):
        to_camel_case("a_b", to="snake")


@pytest.mark.slow
@given(st.from_regex(r"[a-z]{2,5}(_[a-z]{2,5}){0,3}", fullmatch=True))
def test_cases_are_inverse(name):
    """Come back to the same name."""
    assert to_snake_case(to_camel_case(name)) == name
    assert to_snake_case(to_camel_case(name, to="CC")) == name


def test_selections_are_those_of_the_house():
    """Re-export the same functions."""
    assert lab_string.resolve_matching_names is names.resolve_matching_names
    assert lab_string.resolve_matching_names_values is names.resolve_matching_names_values
