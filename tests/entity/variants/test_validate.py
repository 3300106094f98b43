"""Properties in which the variants of one entity must agree."""

from __future__ import annotations

import mujoco
import pytest

from manyworlds.entity.variants import validate_variant_specs
from tests.entity.variants.props import prop, variants

XML = """<mujoco>
  <worldbody>
    <body name="prop"><freejoint name="root"/><geom name="ball" size=".1"/><site name="tip"/>
      <body name="lid"><joint name="hinge"/>{lid}<geom name="cap" size=".1"/></body>
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
    "cord": '<fixed name="cord"><joint joint="hinge" coef="1"/></fixed>',
    "root": '<freejoint name="root"/>',
    "prop": 'body name="prop"',
}
TWO = '<joint name="hinge"/><joint name="twist" axis="0 1 0"/>'
PAIR = '<contact><pair name="near" geom1="ball" geom2="cap"/></contact>'
EXCLUDE = '<contact><exclude body1="prop" body2="lid"/></contact>'
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
    "a tendon less": (spec(cord=""), "tendons", "[]"),
    "a tendon of another joint": (
        spec(hinge=TWO, tendon='<joint joint="twist" coef="1"/>'),
        "tendons",
        "twist",
    ),
    "an equality less": (spec(lock=""), "equalities", "[]"),
    "a camera more": (spec(lid='<camera name="eye"/>'), "cameras", "eye"),
    "a light more": (spec(lid='<light name="lamp"/>'), "lights", "lamp"),
    "a site elsewhere": (spec(site="", lid='<site name="tip" />'), "sites", "'tip', 'lid'"),
    "an actuator of another joint": (
        spec(hinge=TWO, motor='<motor name="motor" joint="twist"/>'),
        "actuators",
        "twist",
    ),
    "a sensor of another joint": (
        spec(hinge=TWO, sensor='<jointpos name="angle" joint="twist"/>'),
        "sensors",
        "twist",
    ),
    "a sensor less": (spec(sensor=""), "sensors", "[]"),
    "an equality of another joint": (
        spec(hinge=TWO, lock='<joint name="lock" joint1="twist"/>'),
        "equalities",
        "twist",
    ),
    "another equality": (
        spec(lock='<connect name="lock" body1="lid" body2="prop" anchor="0 0 0"/>'),
        "equalities",
        "CONNECT",
    ),
    "a pair more": (spec(rest=PAIR), "contact pairs", "'near'"),
    "an exclude more": (spec(rest=EXCLUDE), "contact excludes", "('prop', 'lid')"),
    "a mocap body": (spec(root="", prop='body name="prop" mocap="true"'), "body tree", "True"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_what_must_match_is_named(name):
    """Name the variant and the mismatch, and give a hint."""
    other, what, detail = MISMATCHES[name]
    usual = spec(hinge=TWO) if "twist" in detail else spec()
    with pytest.raises(ValueError) as raised:
        validate_variant_specs(["cup", "jug"], [usual, other])
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


CLOTH = (
    '<flexcomp name="cloth" type="grid" count="3 3 1" dim="2" spacing=".1 .1 .1" radius=".01" '
    'mass="1"/>'
)
SKIN = (
    '<asset><skin name="fur" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2"><bone body="prop" '
    'bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/></skin></asset>'
)
MESH = '<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
TEXTURE = '<asset><texture name="t" type="2d" builtin="flat" width="8" height="8"/></asset>'


def plugged() -> mujoco.MjSpec:
    """Return a spec that asks for a plugin."""
    found = spec()
    found.add_plugin(name="instance", plugin_name="mujoco.pid")
    return found


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (spec(world='<body name="saucer"><geom size=".1"/></body>'), "exactly one root body"),
        (mujoco.MjSpec(), "exactly one root body, but it has 0"),
        (spec(lid='<site name="manyworlds/pad/x"/>'), "reserved prefix"),
        (spec(lid='<geom name="mjlab/pad/x" size=".1"/>'), "reserved prefix"),
        (spec(rest='<asset><material name="mjlab/pad/x"/></asset>'), "reserved prefix"),
        (spec(rest='<asset><hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>'), "hfiel"),
        (spec(lid=CLOTH), "flexes"),
        (spec(rest=SKIN), "skins"),
        (plugged(), "plugins"),
        (spec(lid='<site name="dent" type="mesh" mesh="m"/>', rest=MESH), "sites with a mesh"),
        (spec(lid='<light name="lamp" texture="t"/>', rest=TEXTURE), "lights with a texture"),
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


@pytest.mark.parametrize(
    ("one", "other", "field"),
    [
        ('<general name="m" joint="j"/>', '<general name="m" joint="j" dyntype="integrator"/>', 1),
        ('<sensor><contact name="s" geom1="g" num="1"/></sensor>', None, 2),
        ('<sensor><jointpos name="s" joint="j" delay=".01" nsample="2"/></sensor>', None, 3),
    ],
)
def test_states_of_another_size_are_refused(one, other, field):
    """Refuse what takes more room in the state of some worlds than of others."""
    field = {1: "actuator_actnum", 2: "sensor_dim", 3: "sensor_history"}[field]
    other = other or one.replace('num="1"', 'num="2"').replace('nsample="2"', 'nsample="4"')
    made = {}
    for name, rest in (("one", one), ("other", other)):
        rest = rest if "<sensor>" in rest else f"<actuator>{rest}</actuator>"
        xml = (
            '<mujoco><worldbody><body name="prop"><joint name="j"/><geom name="g" size=".1"/>'
            f"</body></worldbody>{rest}</mujoco>"
        )
        made[name] = lambda xml=xml: mujoco.MjSpec.from_string(xml)
    with pytest.raises(ValueError, match=f"'other': its {field} must be that of variant 'one'"):
        variants(variants=made).build()
