from __future__ import annotations

import mujoco
import pytest

from manyworlds.spec.mjcf import fix_spec_xml, strip_buffer_textures


def test_strip_buffer_textures():
    """Leave a spec that can be written, with its other textures."""
    spec = mujoco.MjSpec()
    rgb = mujoco.mjtTextureRole.mjTEXROLE_RGB
    for name in ("pixels", "drawn"):
        texture = spec.add_texture(
            name=name, type=mujoco.mjtTexture.mjTEXTURE_2D, width=2, height=2, nchannel=3
        )
        spec.add_material(name=name).textures[rgb] = name
    spec.texture("pixels").data = bytes(range(12))
    texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
    spec.compile()
    with pytest.raises(mujoco.FatalError, match="buffer textures"):
        spec.to_xml()
    strip_buffer_textures(spec)
    model = mujoco.MjModel.from_xml_string(_xml(spec))
    assert model.ntex == 1
    assert model.mat("pixels").texid[rgb] == -1
    assert model.mat("drawn").texid[rgb] == 0


def test_empty_defaults():
    """Drop default classes that set nothing and serve nobody, and keep the others."""
    robot = mujoco.MjSpec.from_string(
        """<mujoco><default><default class="empty"><default class="emptier"/></default>
        <default class="named"/><default class="red"><geom rgba="1 0 0 1"/></default></default>
        <worldbody><body childclass="named"><geom size="1"/><geom class="red" size="1"/></body>
        </worldbody></mujoco>"""
    )
    scene = mujoco.MjSpec()
    scene.attach(robot, prefix="a/", frame=scene.worldbody.add_frame())
    xml = _xml(scene)
    assert "a/empty" in xml
    fixed = fix_spec_xml(xml)
    assert "empt" not in fixed
    assert "meshdir" not in fixed
    model, expected = map(mujoco.MjModel.from_xml_string, (fixed, xml))
    assert model.geom_rgba.tolist() == expected.geom_rgba.tolist()


@pytest.mark.parametrize("compiler", ["", '<compiler meshdir="a" assetdir="b" angle="radian"/>'])
def test_meshdir(compiler):
    """Name the folder of the assets."""
    spec = mujoco.MjSpec.from_string(fix_spec_xml(f"<mujoco>{compiler}</mujoco>", "assets"))
    assert (spec.compiler.meshdir, spec.compiler.texturedir) == ("assets", "assets")
    assert spec.compiler.degree == (not compiler)


def _xml(spec: mujoco.MjSpec) -> str:
    spec.compile()
    return spec.to_xml()
