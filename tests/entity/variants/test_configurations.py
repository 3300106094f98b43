"""Variants that are configurations of their own, with actuators and root states."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import pytest
import torch

from manyworlds.actuator import BuiltinPositionActuatorCfg, IdealPdActuatorCfg
from manyworlds.entity import EntityArticulationInfoCfg, EntityCfg, VariantEntityCfg
from manyworlds.scene import Scene, SceneCfg
from manyworlds.sim import Simulation
from tests.entity.variants.props import build, prop
from tests.entity.variants.truth import assert_exact


def hinge(x: float) -> Callable[[mujoco.MjSpec], None]:
    """Return an edit that hinges a lid to a prop."""

    def edit(spec: mujoco.MjSpec) -> None:
        body = spec.body("prop").add_body(name="lid", pos=[x, 0, 0.05])
        body.add_joint(name="hinge", axis=[0, 1, 0], damping=0.01)
        body.add_geom(name="plate", type=mujoco.mjtGeom.mjGEOM_BOX, size=[x, 0.02, 0.01])

    return edit


def lidded(
    seed: int, stiffness: float, height: float, law: type = BuiltinPositionActuatorCfg
) -> EntityCfg:
    """Return a prop with a driven lid."""
    spring = law(target_names_expr=("hinge",), stiffness=stiffness, damping=0.1)
    return EntityCfg(
        spec_fn=prop(seed, hinge(0.02 + 0.01 * seed)),
        init_state=EntityCfg.InitialStateCfg(pos=(0.0, 0.0, height)),
        articulation=EntityArticulationInfoCfg(actuators=(spring,)),
    )


def two(**kwargs: object) -> VariantEntityCfg:
    """Return props by turns, and worlds without one."""
    return VariantEntityCfg(
        variants={"low": lidded(1, 2.0, 0.2), "high": lidded(2, 5.0, 0.4), "none": None},
        assignment=lambda n: [world % 3 for world in range(n)],
        **kwargs,  # type: ignore[arg-type]
    )


def test_worlds_equal_their_configuration_alone():
    """Compile gains and effort limits of each variant, bit for bit."""
    assert_exact({"prop": two()}, 2)


def test_root_states_follow_the_variant():
    """Reset a root to where its variant starts, also after another assignment and a load."""
    scene, sim = build({"prop": two()}, 6)
    data = scene.entity("prop").data

    def heights() -> list[float]:
        return data.default_root_state[:, 2].tolist()

    low, high = 0.2, 0.4
    assert heights() == pytest.approx([low, high, low] * 2)
    state = sim.state_dict()
    sim.assign_variants("prop", [0, 4], [1, 0])
    assert heights() == pytest.approx([high, high, low, low, low, low])
    stiffness = scene.entity("prop").actuators[0].stiffness[:, 0]
    assert stiffness[:2].tolist() == pytest.approx([5.0, 5.0])
    sim.load_state_dict(state)
    assert heights() == pytest.approx([low, high, low] * 2)


def test_equal_root_states_may_be_changed():
    """Leave default states alone that the variants share, as for variants that are functions."""
    cfg = VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2), "b": lidded(2, 5.0, 0.2)})
    scene, sim = build({"prop": cfg}, 2)
    data = scene.entity("prop").data
    data.default_root_state[:, 2] = 0.7
    sim.assign_variants("prop", [0], [1])
    assert torch.equal(data.default_root_state[:, 2], torch.full((2,), 0.7))


def test_limits_of_one_variant():
    """Read no limit in the worlds of a variant without one, whichever comes first."""
    limited = lidded(2, 5.0, 0.4)
    assert limited.articulation is not None
    limited.articulation.actuators[0].effort_limit = 3.0  # type: ignore[attr-defined]
    for order in (
        {"a": lidded(1, 2.0, 0.2), "b": limited},
        {"b": limited, "a": lidded(1, 2.0, 0.2)},
    ):
        scene, _ = build({"prop": VariantEntityCfg(variants={**order})}, 2)
        limits = scene.entity("prop").actuators[0].force_limit[:, 0].tolist()
        expected = {"a": float("inf"), "b": 3.0}
        assert limits == pytest.approx([expected[name] for name in order])


def other_law() -> VariantEntityCfg:
    """Give an actuator of Python other gains."""
    return VariantEntityCfg(
        variants={
            "a": lidded(1, 2.0, 0.2, IdealPdActuatorCfg),
            "b": lidded(2, 3.0, 0.2, IdealPdActuatorCfg),
        }
    )


def other_joints() -> VariantEntityCfg:
    """Let the joints start elsewhere."""
    bent = lidded(2, 3.0, 0.2)
    bent.init_state.joint_pos = {".*": 0.3}
    return VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2), "b": bent})


def other_base() -> VariantEntityCfg:
    """Move one of them from outside."""
    moved = lidded(2, 3.0, 0.2)
    moved.kinematic = True
    return VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2), "b": moved})


def from_keyframe() -> VariantEntityCfg:
    """Take the joints of one of them from a keyframe."""
    cfg = lidded(2, 3.0, 0.2)
    cfg.init_state.joint_pos = None
    return VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2), "b": cfg})


def without_effect() -> VariantEntityCfg:
    """Set what the configurations set."""
    return VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2)}, kinematic=True)


def mixed() -> VariantEntityCfg:
    """Give a function, too."""
    return VariantEntityCfg(variants={"a": lidded(1, 2.0, 0.2), "b": prop(1)})


def nested() -> VariantEntityCfg:
    """Give variants of a variant."""
    return VariantEntityCfg(variants={"a": two()})


def test_the_type_of_a_variant():
    """Say what a variant is, to who gives a file."""
    with pytest.raises(TypeError, match="Variant 'b' of a VariantEntityCfg is of type str: give"):
        VariantEntityCfg(variants={"b": "robot.xml"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_law, "'b': its actuator configurations must be those of variant 'a'"),
        (other_joints, r"'b': its initial joint state must be .*: 0.3.* instead of .*: 0.0"),
        (other_base, "'b': its pose of a fixed base must be those of variant 'a', but it has"),
        (from_keyframe, "Variant 'b' .*joint_pos=None, but variants have no keyframes: give"),
        (without_effect, "VariantEntityCfg.kinematic has no effect, because its variants are"),
        (mixed, "Variant 'b' .* is a function, but 'a' is a configuration: give all"),
        (nested, "Variant 'a' of a VariantEntityCfg has variants itself"),
    ],
)
def test_what_must_be_equal(make: Callable[[], VariantEntityCfg], message: str):
    """Name the variant and what differs, before anything is compiled."""
    with pytest.raises(ValueError, match=message):
        make().build()


def test_a_simulation_without_variants_is_refused():
    """Ask for the variants when the scene is initialized."""
    scene = Scene(SceneCfg(num_envs=2, entities={"prop": two()}))
    sim = Simulation(2, model=scene.compile(), device="cpu")
    with pytest.raises(ValueError, match="does not know of this entity's variants: build it with"):
        scene.initialize(sim.mj_model, sim.model, sim.data)
