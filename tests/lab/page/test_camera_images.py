"""Images of cameras on the page."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from manyworlds.lab import world_from_spec
from manyworlds.lab.pictures import quat_to_look
from tests.lab.conftest import ARM
from tests.lab.page.conftest import give
from tests.waiting import until

SCENE = ARM.replace("<worldbody>", '<worldbody><camera name="top" pos="0 0 3"/>')


@pytest.fixture
def page(open_page, gl):
    """A page of an arm with a camera above it, in direct mode."""
    return open_page(SCENE, mode="direct")


def wait_for(page, condition, what: str) -> None:
    """Update the page until a condition holds."""

    def update() -> None:
        page.lab.loop.iterate_once()
        page._due = dict.fromkeys(page._due, float("-inf"))
        page.update()

    until(condition, what, update)


def shown(part, number: int = 0) -> bool:
    """Tell whether an image has come."""
    image = part.places[number].image
    return image is not None and image.visible


def test_the_page_shows_several_cameras(page):
    """Choose two cameras and a depth: three images are beside each other; take the first away."""
    part, lab = page.parts["CameraImagePart"], page.lab
    lab.call("add_camera", name="eye", pos=[1, 1, 1], look_at=[0, 0, 0])
    wait_for(page, lambda: "eye" in part.places[0].choice.options, "the new camera")
    assert [place.choice.visible for place in part.places] == [True, False, False, False]
    for place, name in zip(part.places, ("top", "eye", "eye depth"), strict=False):
        assert place.choice.visible
        give(place.choice, name)
    wait_for(page, lambda: all(shown(part, number) for number in range(3)), "all images")
    pictures = [place.image.image for place in part.places[:3]]
    assert (pictures[0] != pictures[1]).any() and (pictures[1] != pictures[2]).any()
    give(part.places[0].choice, "nothing")
    give(part.apart, True)
    wait_for(page, lambda: part._window is not None, "the window")
    wait_for(page, lambda: shown(part, 1) and shown(part, 2), "the others there")
    assert part.places[0].stream is None


def test_the_page_shows_a_camera(page):
    """Choose a camera, its depth, and nothing: images come only while one is chosen."""
    part, lab = page.parts["CameraImagePart"], page.lab
    place = part.places[0]
    assert part.places[0].choice.options[:2] == ("nothing", "page")
    assert {"top", "top depth"} <= set(place.choice.options)
    for _ in range(3):
        page.update()
    assert lab.cameras._process is None and place.image is None
    give(part.places[0].choice, "top")
    wait_for(page, lambda: shown(part), "an image")
    np.testing.assert_array_equal(part.places[0].image.image.shape, (480, 640, 3))
    colors = part.places[0].image.image
    give(part.places[0].choice, "top depth")
    wait_for(page, lambda: not part._outdated, "another image")
    wait_for(page, lambda: shown(part), "an image")
    depth = part.places[0].image.image
    assert (depth[..., 0] == depth[..., 1]).all() and (depth != colors).any()
    assert "top depth" in place.below.content and place.below.content.count(" m</span>") == 2
    give(part.rate, 5)
    assert place.stream.rate == 5 and part.period == 0.2
    give(part.places[0].choice, "nothing")
    assert place.stream is None
    count, step = part._cameras.num_drawn, lab.snapshot.step
    wait_for(page, lambda: lab.snapshot.step > step + 100, "steps")
    lab.camera("top").render()  # what was drawn before it has arrived
    assert part._cameras.num_drawn == count and not part._cameras._streams


def test_images_return_after_the_end_of_the_process_that_draws(page):
    """Kill the process: the page says so, and shows images again without a new choice."""
    part, lab = page.parts["CameraImagePart"], page.lab
    give(part.places[0].choice, "top")
    wait_for(page, lambda: shown(part), "an image")
    first = part.places[0].stream
    lab.cameras._process.process.kill()
    wait_for(
        page, lambda: first.is_closed and part.places[0].stream is not first, "a new subscription"
    )
    wait_for(page, lambda: part.places[0].stream.begun, "an image")


def test_the_view_of_the_page_is_a_camera(page):
    """Choose the page's own view: it is a camera of the lab, and follows the view."""
    part, lab = page.parts["CameraImagePart"], page.lab
    give(part.places[0].choice, "page")
    view = page.server.initial_camera
    cfg = lab.camera("page").cfg
    assert cfg.pos == pytest.approx(tuple(view.position))
    assert cfg.quat == pytest.approx(quat_to_look(view.position, view.look_at))
    assert cfg.fovy == pytest.approx(np.degrees(view.fov))
    wait_for(page, lambda: shown(part), "an image")
    assert lab.camera("page").frame("body").image.max() > 0  # it sees the arm
    view.position = (3.0, 0.0, 2.0)
    wait_for(page, lambda: lab.camera("page").cfg.pos == (3.0, 0.0, 2.0), "the view")


@pytest.mark.slow
def test_all_streams_are_switched(page):
    """Switch the streams of all cameras off and on: the reason is shown, programs have it, too."""
    part, lab = page.parts["CameraImagePart"], page.lab
    lab.call("add_camera", name="eye", pos=[1, 1, 1], look_at=[0, 0, 0])
    give(part.places[0].choice, "top")
    wait_for(page, lambda: shown(part), "an image")
    give(part.streams, False)
    assert not any(cfg.enabled for cfg in lab.cameras.cfgs.values())
    wait_for(page, lambda: "is switched off" in part.places[0].note.content, "the reason")
    give(part.streams, True)
    assert all(cfg.enabled for cfg in lab.cameras.cfgs.values())
    wait_for(page, lambda: not part.places[0].note.content, "images again")
    lab.call("configure_camera", camera="eye", enabled=False)  # by another one
    wait_for(page, lambda: not part.streams.value, "the box follows")


@pytest.mark.slow
def test_errors_and_rebuilds(page, monkeypatch):
    """Remove the shown camera, and rebuild the world: the reason is shown, and no thread stays."""
    part, lab = page.parts["CameraImagePart"], page.lab
    lab.call("add_camera", name="eye", pos=[1, 1, 1], look_at=[0, 0, 0])
    wait_for(page, lambda: "eye" in part.places[0].choice.options, "the new camera")
    give(part.places[0].choice, "eye")
    wait_for(page, lambda: shown(part), "an image")
    lab.call("remove_camera", camera="eye")
    wait_for(page, lambda: "eye" in part.places[0].note.content, "the reason")
    old = part._cameras
    assert lab.rebuild(lambda: world_from_spec(mujoco.MjSpec.from_string(SCENE)))
    page.update()
    assert page.parts["CameraImagePart"] is not part and not old._listener.is_alive()
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    part = page.parts["CameraImagePart"]
    give(part.places[0].choice, "top")
    assert "unset MUJOCO_GL" in part.places[0].note.content and part.places[0].stream is None
