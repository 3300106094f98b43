"""What the variants of one entity must agree on."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity.variants import validate_variant_specs
from tests.entity.variants.props import prop, variants

XML = """<mujoco>
  <worldbody>
    <body name="prop"><freejoint name="root"/><geom size=".1"/><site name="tip"/>
      <body name="lid"><joint name="hinge"/>{lid}<geom size=".1"/></body>
    </body>
    {world}
  </worldbody>
  <tendon><fixed name="cord"><joint joint="hinge" coef="1"/></fixed></tendon>
  <equality><joint name="lock" joint1="hinge"/></equality>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
  {rest}
</mujoco>"""


def spec(lid: str = "", world: str = "", rest: str = "", **replace: str) -> mujoco.MjSpec:
    """Return a spec with something added, or something replaced by the name of its entry."""
    xml = XML.format(lid=lid, world=world, rest=rest)
    for old, new in replace.items():
        xml = xml.replace(SWAPS[old], new)
    return mujoco.MjSpec.from_string(xml)


SWAPS = {
    "lid_name": 'body name="lid"',
    "hinge": '<joint name="hinge"/>',
    "site": '<site name="tip"/>',
    "motor": '<motor name="motor" joint="hinge"/>',
    "sensor": '<jointpos name="angle" joint="hinge"/>',
    "tendon": '<joint joint="hinge" coef="1"/>',
    "lock": '<joint name="lock" joint1="hinge"/>',
}
DIAGONAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
FULL = '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 0 0 0"/>'

MISMATCHES = {
    "a body more": (spec(lid='<body name="knob"><geom size=".1"/></body>'), "body tree", "'/prop"),
    "a body renamed": (spec(lid_name='body name="cap"'), "body tree", "'/prop'"),
    "a joint more": (spec(lid='<joint name="slide" type="slide"/>'), "joints", "'/prop/lid'"),
    "another type of joint": (spec(hinge='<joint name="hinge" type="slide"/>'), "joints", "SLIDE"),
    "another inertia": (spec(lid=DIAGONAL), "inertial representation", "mesh-derived"),
    "a site less": (spec(site=""), "sites", "[]"),
    "an actuator less": (spec(motor=""), "actuators", "[]"),
    "another sensor": (spec(sensor='<jointvel name="angle" joint="hinge"/>'), "sensors", "angle"),
    "a longer tendon": (spec(tendon=2 * SWAPS["tendon"]), "tendons", "cord"),
    "an equality less": (spec(lock=""), "equalities", "[]"),
    "a camera more": (spec(lid='<camera name="eye"/>'), "cameras", "eye"),
    "a light more": (spec(lid='<light name="lamp"/>'), "lights", "lamp"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_what_must_match_is_named(name):
    """Name the variant and the mismatch, and give a hint."""
    other, what, detail = MISMATCHES[name]
    with pytest.raises(ValueError) as raised:
        validate_variant_specs(["cup", "jug"], [spec(), other])
    text = str(raised.value)
    assert text.startswith("manyworlds.entity: VariantEntityCfg 'jug': its " + what)
    assert (
        detail in text
        and "'cup'" in text
        and "Hint: give all variants the same"
        in (text.replace("give inertias in the same way", "give all variants the same"))
    )


def test_inertial_modes_do_not_mix():
    """Tell numbers along the axes from a full matrix."""
    with pytest.raises(ValueError, match=r"it has fullinertia instead of diagonal\. Hint:"):
        validate_variant_specs(["cup", "jug"], [spec(lid=DIAGONAL), spec(lid=FULL)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (spec(world='<body name="saucer"><geom size=".1"/></body>'), "exactly one root body"),
        (spec(lid='<site name="manyworlds/pad/x"/>'), "reserved prefix"),
        (spec(rest='<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'), "hfiel"),
    ],
)
def test_a_variant_must_be_able_to_be_one(other, message):
    """Refuse what no variant may have, in the first as in the others."""
    for specs in ([other, spec()], [spec(), other]):
        with pytest.raises(ValueError, match=rf"VariantEntityCfg '.*{message}.*Hint:"):
            validate_variant_specs(["cup", "jug"], specs)


def test_a_variant_that_does_not_compile_is_named():
    """Say which of forty variants MuJoCo refuses."""
    good = {f"rock_{i}": prop(i) for i in range(40)}
    bad = prop(1, lambda spec: setattr(spec.geoms[0], "density", 0.0))
    with pytest.raises(ValueError, match="VariantEntityCfg 'bad': it does not compile: .*mass"):
        variants(variants={**good, "bad": bad}).build()
