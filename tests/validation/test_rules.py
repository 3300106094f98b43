"""Rules of how strictly input is checked."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.envs.config_checks import check_ranges
from manyworlds.scene import Scene, SceneCfg
from manyworlds.spec.config import CollisionCfg
from manyworlds.validation.names import filter_exp, resolve_expr
from manyworlds.validation.rules import RULES, Rules

NAMES = ("hip_collision", "hip_collision2", "knee_collision", "knee")
XML = """
<mujoco>
  <worldbody><body name="base"><freejoint/><geom name="{0}" size=".1"/>
    <body name="arm"><joint/><geom name="{1}" size=".1"/></body>
  </body></worldbody>
  <contact><exclude body1="base" body2="{2}"/><exclude body1="base" body2="arm"/></contact>
</mujoco>
"""


@pytest.fixture
def lenient(monkeypatch):
    """Let patterns in tables match beginnings of names, and warn of doubtful input."""
    monkeypatch.setattr("manyworlds.validation.names.RULES", [Rules(True, True)])
    monkeypatch.setattr("manyworlds.validation.rules.RULES", [Rules(True, True)])


def test_tables_match_beginnings_of_names(lenient):
    """Let the first pattern that matches a beginning determine the value."""
    assert filter_exp((".*_collision",), NAMES) == NAMES[:3]
    assert resolve_expr({"hip_collision2": 1, ".*_coll": 2}, NAMES, 0) == (2, 1, 2, 0)
    assert resolve_expr({".*": 1}, ()) == ()


def test_doubtful_input_is_warned_of(lenient):
    """Warn with the sentence of the error."""
    with pytest.warns(UserWarning, match="'ankle' matches none of"):
        assert resolve_expr({"ankle": 1}, NAMES, 0) == (0, 0, 0, 0)
    with pytest.warns(UserWarning, match="'ankle' matches none of"):
        assert filter_exp(("ankle", "knee"), NAMES) == NAMES[2:]
    with pytest.warns(UserWarning, match=r"x.some_range is \(2, 1\).*lower bound first"):
        check_ranges("x", {"some_range": (2.0, 1.0)})


def _scene(other: str) -> mujoco.MjModel:
    cfg = EntityCfg(
        spec_fn=lambda: mujoco.MjSpec.from_string(XML.format(*NAMES[:2], other)),
        collisions=(CollisionCfg(geom_names_expr=(".*_collision",), condim=4),),
    )
    return Scene(SceneCfg(num_envs=1, entities={"robot": cfg}), "cpu").compile()


def test_an_exclusion_of_a_missing_body_is_left_out(lenient):
    """Warn of an exclusion that names another entity's body, and keep the others."""
    with pytest.warns(UserWarning, match="body 'terrain' not found"):
        model = _scene("terrain")
    assert model.nexclude == 1
    assert model.geom_condim.tolist() == [4, 4]


def test_without_such_rules_they_are_refused():
    """Match whole names, and refuse doubtful input."""
    assert len(RULES) == 1 and not RULES[0].tolerates_doubts
    assert filter_exp((".*_collision",), NAMES) == (NAMES[0], NAMES[2])
    with pytest.raises(ValueError, match="body 'terrain' not found"):
        _scene("terrain")
    with pytest.raises(ValueError, match="lower bound first"):
        check_ranges("x", {"some_range": (2.0, 1.0)})
