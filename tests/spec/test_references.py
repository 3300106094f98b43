"""Elements that refer to missing ones are errors, and keyframes are those of their parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest

from manyworlds.cli.validate import validate_file
from manyworlds.entity import EntityCfg
from manyworlds.lab import LiveLab
from manyworlds.lab.world.scene_files import scene_mjcf
from manyworlds.lab.world.world import CompileError, world_from_file, world_from_spec
from manyworlds.plugins.urlab.client_model import client_mjcf
from manyworlds.scene import Scene, SceneCfg
from manyworlds.spec.edits import export_spec
from manyworlds.spec.load import load_spec

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


_HAND = """<mujoco model="hand"><worldbody><body name="{0}palm"><joint name="{0}finger"/>
<geom size=".1"/></body></worldbody>{1}</mujoco>"""
_HOME = '<keyframe><key name="home" qpos="0.1"/></keyframe>'
_UNNAMED = '<keyframe><key qpos="0.1"/><key qpos="0.2"/></keyframe>'
_BASE = """<mujoco model="base"><asset><model name="hand" file="hand.xml"/></asset><worldbody>
<body name="base"><geom size=".1"/>{0}</body></worldbody></mujoco>"""
_ATTACH = '<frame><attach model="hand" prefix="{0}"/></frame>'


def keyframes(model: mujoco.MjModel) -> dict[str, list[float]]:
    """Return the positions of each keyframe but that of the initial state, by name."""
    found = {model.key(i).name: model.key_qpos[i].tolist() for i in range(model.nkey)}
    found.pop("init_state", None)
    return found


def hands(folder: Path, keys: str, *prefixes: str) -> Path:
    """Write a base that attaches a hand with a keyframe for each prefix; return its path."""
    (folder / "hand.xml").write_text(_HAND.format("", keys))
    path = folder / "base.xml"
    path.write_text(_BASE.format("".join(_ATTACH.format(prefix) for prefix in prefixes)))
    return path


def spec_functions(path: Path) -> dict[str, Callable[[], mujoco.MjSpec]]:
    """Return functions that load a model with MuJoCo and with this project."""
    return {
        "MuJoCo": lambda: mujoco.MjSpec.from_file(str(path)),
        "ours": lambda: load_spec(path)[0],
    }


@pytest.mark.parametrize("loader", ["MuJoCo", "ours"])
def test_keyframes_of_attached_parts_have_values(loader, tmp_path):
    """Begin as the first keyframe says, which is that of a hand that the file attaches."""
    spec_fn = spec_functions(hands(tmp_path, _HOME, "left_", "right_"))[loader]
    init = EntityCfg.InitialStateCfg(joint_pos=None)
    entity = EntityCfg(spec_fn=spec_fn, init_state=init).build()
    assert entity.initial_qpos() == {"left_finger": [0.1], "right_finger": [0.0]}


@pytest.mark.parametrize("loader", ["MuJoCo", "ours"])
def test_two_robots_with_attached_hands(loader, tmp_path):
    """Put two robots that attach a hand into a scene: each has the keyframe of its hand."""
    spec_fn = spec_functions(hands(tmp_path, _HOME, "left_"))[loader]
    robots = {name: EntityCfg(spec_fn=spec_fn) for name in ("a", "b")}
    model = Scene(SceneCfg(num_envs=2, entities=robots), device="cpu").compile()
    assert keyframes(model) == {"a/left_home": [0.1, 0.0], "b/left_home": [0.0, 0.1]}


def test_keyframes_without_a_name(tmp_path):
    """Put two robots with two keyframes without a name into a scene and into a lab."""
    path = tmp_path / "leg.xml"
    path.write_text(_HAND.format("", _UNNAMED))
    robots = {name: EntityCfg(spec_fn=lambda: load_spec(path)[0]) for name in ("a", "b")}
    model = Scene(SceneCfg(num_envs=1, entities=robots), device="cpu").compile()
    assert keyframes(model) == {
        "a/key_0": [0.1, 0.0],
        "a/key_1": [0.2, 0.0],
        "b/key_0": [0.0, 0.1],
        "b/key_1": [0.0, 0.2],
    }
    world = world_from_file(path)  # alone, it is as in MuJoCo
    assert [world.model.key(i).name for i in range(2)] == ["", ""]
    assert "hand_key_1" in client_mjcf(*scene_mjcf(world), world.robots)[0]


@pytest.mark.parametrize("source", ["file", "spec"])
@pytest.mark.parametrize(
    ("keys", "names", "prefixes"),
    [
        (_HOME, ["left_home", "right_home"], ["left_", "right_"]),
        (_HOME, ["left_home"], ["left_"]),
        (_UNNAMED, ["key_0", "key_1"], []),
    ],
)
def test_keyframes_in_a_lab(source, keys, names, prefixes, tmp_path):
    """Add models with keyframes twice, remove and copy one: all keep their values."""
    path = hands(tmp_path, keys, *prefixes)
    path = path if prefixes else tmp_path / "hand.xml"
    start = mujoco.MjSpec.from_string(_HAND.format("first_", _HOME))
    lab = LiveLab(world_from_spec(start))
    make = {"file": lambda: path, "spec": lambda: mujoco.MjSpec.from_file(str(path))}[source]
    lab.scene.add(make(), "p")
    lab.scene.add(make(), "q")
    values = mujoco.MjModel.from_xml_path(str(path)).key_qpos
    width = values.shape[1]
    empty = np.zeros_like(values)
    found = keyframes(lab.model)
    assert [*found] == ["home", *(f"p/{name}" for name in names), *(f"q/{name}" for name in names)]
    rows = np.array([*found.values()])
    assert np.array_equal(rows[1:, 1:], np.block([[values, empty], [empty, values]]))
    lab.scene.remove("p")
    lab.scene.duplicate("q", "r")
    lab.scene.add(make(), "p")
    after = keyframes(lab.model)
    finger = f"{prefixes[0] if prefixes else ''}finger"
    starts = {name: int(lab.model.joint(f"{name}/{finger}").qposadr[0]) for name in "pq"}
    for name, other in (("p", "q"), ("q", "p")):
        for key, value in zip(names, values, strict=True):
            row = after[f"{name}/{key}"]
            assert row[starts[name] : starts[name] + width] == value.tolist()
            assert not any(row[starts[other] : starts[other] + width])
    lab.stop()


@pytest.mark.parametrize("way", ["load", "skip", "world", "scene", "add", "validate", "export"])
def test_keyframes_that_mujoco_refuses_do_not_end_the_process(way, tmp_path):
    """Attach a part with two keyframes without a name: each way in raises MuJoCo's error."""
    path = hands(tmp_path, _UNNAMED, "left_")
    spec = mujoco.MjSpec.from_file(str(path))
    lab = LiveLab(world_from_spec(mujoco.MjSpec.from_string(_HAND.format("first_", ""))))

    def validate() -> None:
        report = validate_file(path)
        assert report.hints == [
            "an attached model has several keyframes without a name: give each one a name."
        ]
        raise ValueError(report.error)

    ways: dict[str, Callable[[], object]] = {
        "load": lambda: load_spec(path),
        "skip": lambda: load_spec(path, missing_meshes="skip"),
        "world": lambda: world_from_spec(spec),
        "scene": EntityCfg(spec_fn=lambda: spec).build,
        "add": lambda: lab.scene.add(spec),
        "validate": validate,
        "export": lambda: export_spec(spec, tmp_path / "export"),
    }
    with pytest.raises(ValueError, match="repeated name 'left_' in key"):
        ways[way]()
    lab.stop()
