import pytest

from manyworlds.entity import PropCfg
from manyworlds.scene import Scene, SceneCfg


@pytest.mark.parametrize(("mode", "free"), [("dynamic", 1), ("static", 0), ("mocap", 0)])
def test_a_prop_moves_as_its_mode_says(mode, free):
    """Count the degrees of freedom and mocap bodies of a primitive in each mode."""
    model = PropCfg.primitive("box", size=(0.1, 0.2, 0.3), mode=mode).build().compile()
    assert (model.nq, model.nmocap) == (7 * free, 1 - free)


def test_a_prop_in_a_scene_has_its_entitys_prefix():
    """Compile a prop in a scene."""
    props = {"crate": PropCfg.primitive("box", size=(0.1, 0.2, 0.3), mass=2.0)}
    model = Scene(SceneCfg(entities=props)).compile()
    assert model.body("crate/prop").mass == pytest.approx(2.0)
