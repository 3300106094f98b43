"""The humanoid against the figures it is made of."""

from __future__ import annotations

import numpy as np
import pytest

from manyworlds.asset_zoo.humanoid import FEET, get_humanoid_cfg, get_spec
from tests.asset_zoo.models import (
    ENGINES,
    at_zero,
    check_mirror_symmetry,
    initial,
    joint_figures,
    reference,
    simulate,
    world_inertia,
)


def test_figures_are_those_of_the_source():
    """Weigh each body, and place, turn and limit each joint, as the source does."""
    (ours, data), (theirs, their_data) = (
        at_zero(get_spec().compile()),
        reference("unitree_g1/g1.xml"),
    )
    for i in range(1, ours.nbody):
        name = ours.body(i).name
        other = theirs.body(name).id
        assert ours.body_mass[i] == pytest.approx(theirs.body_mass[other], rel=1e-12)
        np.testing.assert_allclose(data.xpos[i], their_data.xpos[other], atol=5e-5)
        # The source's sides differ: centers of mass by 0.3 mm, the knees' products of inertia by
        # their sign.
        np.testing.assert_allclose(data.xipos[i], their_data.xipos[other], atol=3.5e-4)
        np.testing.assert_allclose(
            world_inertia(ours, data, name), world_inertia(theirs, their_data, name), atol=1e-4
        )
    assert ours.nbody == theirs.nbody
    assert ours.body_subtreemass[1] == pytest.approx(33.341142, abs=1e-9)
    figures, expected = joint_figures(ours, data), joint_figures(theirs, their_data)
    assert sorted(figures) == sorted(expected) and len(figures) == 29
    for name in figures:
        # The source's shoulders are turned by a further 0.2 mrad about z.
        np.testing.assert_allclose(figures[name][:6], expected[name][:6], atol=2.1e-4)
        np.testing.assert_array_equal(figures[name][6:], expected[name][6:])


def test_joints_are_in_the_order_of_the_source():
    """Have joints, and so actions and motions, in the same order as the source."""
    ours, theirs = at_zero(get_spec().compile()), reference("unitree_g1/g1.xml")
    assert list(joint_figures(*ours)) == list(joint_figures(*theirs))


def test_left_and_right_are_mirror_images():
    """Reflect a moving robot."""
    check_mirror_symmetry(get_spec(), [("left", "right")])


def test_it_begins_with_its_feet_on_the_ground():
    """Touch the ground with both feet and nothing else, pressed in by 3.4 mm as the source is."""
    sim = simulate(get_humanoid_cfg())
    data = initial(sim)
    touching = {sim.mj_model.geom(i).name for contact in data.contact for i in contact.geom}
    soles = {f"robot/{foot}{i}_collision" for foot in FEET for i in (1, 2)}
    assert touching == {"terrain"} | soles
    for foot in FEET:
        # The site is 2 mm below the sole, where the source has it.
        assert data.site(f"robot/{foot}").xpos[2] == pytest.approx(-0.0054, abs=2e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_it_falls_slowly(engine):
    """Stay up for a second; its ankles are weaker than gravity, so that balance is for a policy.

    A pendulum of 33 kg at 0.6 m topples with 200 N m/rad; both ankles hold against it with 57.
    """
    sim = simulate(get_humanoid_cfg(), engine)
    sim.step(nsubsteps=200)
    assert sim.data.qpos[0, 2] == pytest.approx(0.75, abs=0.02)
    tilt = sim.data.qpos[0, 4:6]
    assert 1 - 2 * tilt.square().sum() > 0.97
