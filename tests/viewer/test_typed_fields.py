"""Number fields of the play page in a real browser."""

from __future__ import annotations

import threading

import pytest

from tests.browser import free_port

pytest.importorskip("viser", reason="needs the extra 'lab'")


@pytest.mark.parametrize("engine", ["native"], indirect=True)  # the page is the same
def test_a_world_is_selected_when_its_number_is_complete(make_env, rest, browser):
    """Type 12: world 1 is never selected; a world beyond the last is the last."""
    from manyworlds.viewer.viser import ViserPlayViewer

    viewer = ViserPlayViewer(make_env(16), rest, frame_rate=10.0, port=free_port(), num_shown=1)
    selected, select = [], viewer.select_env

    def note(env_idx: int) -> None:
        selected.append(env_idx)
        select(env_idx)

    viewer.select_env = note
    viewer.setup()
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.02):
            viewer.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        browser.set_viewport_size({"width": 900, "height": 800})
        browser.goto(viewer.url)
        field = browser.get_by_label("World (0-15)")
        for text, world in (("12", 12), ("3", 3), ("20", 15)):
            field.click()
            for key in text:
                browser.keyboard.type(key)
                browser.wait_for_timeout(400)
            browser.keyboard.press("Enter")
            for _ in range(100):
                if selected and selected[-1] == world:
                    break
                browser.wait_for_timeout(100)
            browser.wait_for_timeout(1500)  # the page shows the selected world again
            assert field.input_value() == str(world)
        assert selected == [12, 3, 15]
        text = "20 is out of bounds: the nearest value, 15, is used."
        browser.get_by_text(text).wait_for()
    finally:
        stop.set()
        thread.join()
        viewer.close()
