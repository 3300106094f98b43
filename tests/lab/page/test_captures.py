"""Captures for overlays, and direct steps beside a page."""

from __future__ import annotations

import threading

import mujoco
import numpy as np

from manyworlds.lab import LabCfg, LiveLab, world_from_spec
from manyworlds.viewer.browser.overlays.captures import CapturedContacts, capture
from tests.waiting import least_cpu_s

BALLS = "".join(
    f'<body pos="{0.3 * (i % 15)} {0.3 * (i // 15)} .099"><freejoint/><geom size=".1"/></body>'
    for i in range(210)
)
PILE = f"""<mujoco><worldbody><geom name="floor" type="plane" size="9 9 .1"/>{BALLS}</worldbody>
</mujoco>"""


def test_many_contacts_are_copied_quickly():
    """Copy two hundred contacts: physics waits for less than a picture takes."""
    world = world_from_spec(mujoco.MjSpec.from_string(PILE))
    data = world.new_data()
    mujoco.mj_forward(world.model, data)
    assert data.ncon >= 200
    contacts = capture(world.model, data, (CapturedContacts,))[CapturedContacts]
    assert isinstance(contacts, CapturedContacts) and contacts.positions.shape == (data.ncon, 3)
    assert least_cpu_s(lambda: capture(world.model, data, (CapturedContacts,)), 0.005) < 0.005


def test_contacts_are_of_one_step():
    """Copy contacts of a running world: as many points as forces, all of the state beside them."""
    world = world_from_spec(mujoco.MjSpec.from_string(PILE))
    with LiveLab(world, LabCfg(speed=float("inf"))) as lab:
        for _ in range(20):
            found, data = lab.loop.do(
                lambda model, data: (
                    capture(model, data, (CapturedContacts,)),
                    data.contact.pos.copy(),
                )
            )
            contacts = found[CapturedContacts]
            assert np.array_equal(contacts.positions, data.reshape(-1, 3))
            assert len(contacts.forces) == len(contacts.normals) == len(data)


def test_a_page_leaves_direct_steps_alone(open_page):
    """Step with a page that is drawn all the time: the states are those of a plain loop."""
    page = open_page(mode="direct")
    page.parts["OverlayPart"].boxes["contact_forces"].value = True
    lab, done = page.lab, threading.Event()

    def draw() -> None:
        while not done.is_set():
            page.update()

    thread = threading.Thread(target=draw)
    lab.start()
    thread.start()
    snapshot = lab.step(300)
    done.set()
    thread.join()
    data = mujoco.MjData(lab.world.model)
    for _ in range(300):
        mujoco.mj_step(lab.world.model, data)
    assert np.array_equal(snapshot.qpos, data.qpos) and np.array_equal(snapshot.qvel, data.qvel)
    assert not page.errors
