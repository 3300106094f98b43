"""Elements that refer to missing ones are errors, where MuJoCo would leave them out."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity import EntityCfg
from manyworlds.lab.world import CompileError, world_from_spec
from manyworlds.scene import Scene, SceneCfg
from manyworlds.spec.edits import export_spec

_BODY = '<worldbody><body name="b"><freejoint/><geom name="a" size=".1"/></body></worldbody>'
_BROKEN = {
    "pair 'p'": '<contact><pair name="p" geom1="a" geom2="no"/></contact>',
    "exclude without a name": '<contact><exclude body1="b" body2="no"/></contact>',
    "sensor 's'": '<sensor><gyro name="s" site="no"/></sensor>',
    "actuator 'm'": '<actuator><motor name="m" joint="no"/></actuator>',
    "equality 'e'": '<equality><weld name="e" body1="no"/></equality>',
    "tendon 't'": '<tendon><fixed name="t"><joint joint="no" coef="1"/></fixed></tendon>',
}


@pytest.mark.parametrize("what", _BROKEN)
def test_a_missing_reference_is_an_error(what, tmp_path):
    """Refer to what does not exist: scene, lab and export refuse the model, as MuJoCo does."""

    def spec() -> mujoco.MjSpec:
        return mujoco.MjSpec.from_string(f"<mujoco>{_BODY}{_BROKEN[what]}</mujoco>")

    with pytest.raises(ValueError, match="not found|unknown|unrecognized") as raised:
        spec().compile()
    reason = " ".join(str(raised.value).split())
    with pytest.raises(CompileError) as raised:
        world_from_spec(spec())
    assert str(raised.value) == reason
    with pytest.raises(ValueError) as raised:
        export_spec(spec(), tmp_path / "export")
    assert reason in " ".join(str(raised.value).split()) and not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="Entity 'robot': ") as raised:
        Scene(SceneCfg(entities={"robot": EntityCfg(spec_fn=spec)}), device="cpu")
    assert reason in " ".join(str(raised.value).split())


def test_complete_models_are_as_before():
    """Copy models with elements of each kind: nothing is missed."""
    parts = (
        '<contact><pair geom1="a" geom2="g"/><exclude body1="b" body2="world"/></contact>',
        '<equality><weld body1="b"/></equality>',
        '<sensor><framepos objtype="body" objname="b"/></sensor>',
    )
    body = _BODY.replace("</worldbody>", '<geom name="g" size=".1"/></worldbody>')
    spec = mujoco.MjSpec.from_string(f"<mujoco>{body}{''.join(parts)}</mujoco>")
    model = world_from_spec(spec).model
    assert (model.npair, model.nexclude, model.neq, model.nsensor) == (1, 1, 1, 1)
