"""`manyworlds terrain`: what is shown, in a picture and on a page."""

from __future__ import annotations

import urllib.request

import numpy as np
import pytest

from manyworlds.cli import terrain_view as command
from manyworlds.cli.main import main
from manyworlds.scene import Scene
from manyworlds.terrains.config import ROUGH_TERRAINS_CFG


def test_ready_terrains_and_kinds_are_found():
    """Take a ready terrain, or give each kind a column; change fields, of copies only."""
    rough = command.find_terrain(["rough"], {"step_width": 0.5})
    assert list(rough.sub_terrains) == list(ROUGH_TERRAINS_CFG.sub_terrains)
    assert rough.sub_terrains["pyramid_stairs"].step_width == 0.5
    assert ROUGH_TERRAINS_CFG.sub_terrains["pyramid_stairs"].step_width == 0.3
    some = command.find_terrain(["flat", "wave_terrain"], {})
    assert some.num_cols == 2 and some.curriculum


@pytest.mark.parametrize(
    ("kinds", "change", "message"),
    [
        (["stares"], {}, r"'stares' is no kind .* Did you mean 'stairs'\?"),
        (["rough", "flat"], {}, "'rough' is no kind .* rough, high-steps, stairs alone"),
        (["flat"], {"step_width": 0.5}, "kinds flat has a field 'step_width'. Fields: .*, size"),
        (["rough"], {"step_widht": 0.5}, r"'step_widht'\. Did you mean 'step_width'\?"),
    ],
)
def test_mistakes_are_named(kinds, change, message):
    """Say which name or field is unknown."""
    with pytest.raises(ValueError, match=message):
        command.find_terrain(kinds, change)


@pytest.mark.parametrize(
    ("picture", "code", "message"),
    [
        ("t.txt", 2, "--picture 't.txt' must end in .png, .jpg"),
        ("picture", 2, "--picture 'picture' must end in .png"),
        ("no/t.PNG", 1, "There is no folder 'no' for --picture 't.PNG'"),
    ],
)
def test_pictures_that_cannot_be_written(picture, code, message, monkeypatch, tmp_path, capsys):
    """Refuse a file that is no picture, or has no folder, before the terrain is built."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "show", lambda options: pytest.fail("the terrain was built"))
    assert main(["terrain", "--picture", picture]) == code
    assert message in capsys.readouterr().err


def test_a_robot_stands_in_the_middle():
    """Put it on the origin of the middle cell of the terrain that is shown."""
    terrain = command.find_terrain(["flat", "pyramid_stairs"], {})
    terrain.seed = 3
    scene_cfg = command.terrain_scene(terrain, "quadruped")
    scene = Scene(scene_cfg)
    pos = np.array(scene_cfg.entities["robot"].init_state.pos)
    home = command.ROBOT_CFG_GETTERS["quadruped"]().init_state.pos
    np.testing.assert_allclose(scene.terrain.terrain_origins[1, 1], pos - home, atol=1e-5)
    with pytest.raises(ValueError, match="There is no robot 'dog': choose one of"):
        command.terrain_scene(terrain, "dog")


def test_the_picture_shows_the_terrain(tmp_path, capsys, gl):
    """Draw a file, on which a change of the terrain is seen."""
    image = pytest.importorskip("PIL.Image")
    pictures = []
    for change in ("{}", "{'amplitude_range': (0.0, 0.0)}"):
        path = tmp_path / "wave.png"
        arguments = ["--picture", str(path), "--width", "160", "--height", "90", "--rows", "1"]
        arguments += ["--difficulty", "(1.0, 1.0)"]
        assert main(["terrain", "wave_terrain", "--change", change, *arguments]) == 0
        pictures.append(np.asarray(image.open(path)).astype(int))
    assert str(path) in capsys.readouterr().out
    assert pictures[0].shape == (90, 160, 3)
    assert np.abs(pictures[0] - pictures[1]).max() > 50


@pytest.mark.slow
@pytest.mark.parametrize("options", [["rough", "--rows", "1"], ["rough"], ["flat", "--rows", "1"]])
def test_the_terrain_fills_the_picture(tmp_path, options, gl):
    """Keep all of the slab in the frame, as large as it can be, below a sky."""
    image = pytest.importorskip("PIL.Image")
    path = tmp_path / "terrain.png"
    size = ["--width", "320", "--height", "180"]
    assert main(["terrain", *options, *size, "--picture", str(path)]) == 0
    red, _, blue = np.moveaxis(np.asarray(image.open(path)).astype(int), -1, 0)
    is_sky = blue - red > 12
    assert is_sky[[0, -1]].all() and is_sky[:, [0, -1]].all()
    shares = [(~is_sky).any(axis=axis).mean() for axis in (0, 1)]
    assert max(shares) > 0.85


def test_the_page_shows_the_terrain(monkeypatch, capsys):
    """Serve a page until the time is over."""
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")
    pytest.importorskip("viser", reason="the page needs the extra 'lab'")

    def wait(seconds: float | None) -> None:
        assert seconds == 0.5
        url = capsys.readouterr().out.split()[2]
        with urllib.request.urlopen(url) as answer:
            assert answer.status == 200

    monkeypatch.setattr(command, "wait", wait)
    assert main(["terrain", "flat", "--rows", "1", "--seconds", "0.5"]) == 0
