"""Films: shots, camera paths, and drawing beside a world that goes on."""

from __future__ import annotations

import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
from PIL import Image

from manyworlds.lab import LabCfg, LiveLab, RecorderCfg
from manyworlds.lab.page.film_controls import _told
from manyworlds.lab.pictures.film import CameraPath, Film, Waypoint, make_shot
from manyworlds.lab.pictures.film.shots import (
    FirstPersonShot,
    FollowShot,
    OrbitShot,
    everything,
    fit_radius,
)
from tests.lab.scene.test_rebuild import suite_file
from tests.robots import robot_file

PATIENCE_S = 300.0  # films give way to other programs


@pytest.fixture
def film_lab(world, tmp_path):
    """A lab that waits for steps, and writes into a folder of its own."""
    cfg = LabCfg(mode="direct", recorder=RecorderCfg(folder=tmp_path, to_file=False))
    lab = LiveLab(world, cfg)
    yield lab
    lab.stop()


def frames_of(path: str) -> list[np.ndarray]:
    """Images of a video file."""
    if path.endswith(".gif"):
        with Image.open(path) as image:
            count = getattr(image, "n_frames", 1)
            return [np.array((image.seek(i), image.convert("RGB"))[1]) for i in range(count)]
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    reader = ffmpeg.read_frames(path)
    size = next(reader)["size"]
    return [np.frombuffer(raw, np.uint8).reshape(size[1], size[0], 3) for raw in reader]


def test_the_orbit_follows_its_formula():
    """Compare positions with the circle: 3 m, 30 degrees/s, 0.8 m +- 0.2 m twice an orbit."""
    orbit = OrbitShot()
    for time in np.linspace(0.0, 12.0, 49):
        x, y, z = OrbitShot(radius=3.0).around(time)
        angle = math.radians(30.0 * time)
        assert (x, y) == pytest.approx((3.0 * math.cos(angle), 3.0 * math.sin(angle)))
        assert z == pytest.approx(0.8 + 0.2 * math.sin(2.0 * angle))
    assert orbit.around(12.0) == pytest.approx(orbit.around(0.0))


@pytest.mark.parametrize("model", ["walker", "quadruped", "unitree_go1/go1.xml"])
def test_orbits_show_all_of_a_robot(model):
    """Fit the radius to robots: 1.4 times their size, at least 1.5 m; smooth a jump away."""
    path = robot_file(model) if "/" in model else suite_file(model)
    compiled = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    moving = [b for b in range(1, compiled.nbody) if compiled.body_dofnum[b]]
    name = compiled.body(moving[0]).name
    radius = fit_radius(compiled, data, name)
    own = compiled.body_rootid[compiled.geom_bodyid] == compiled.body_rootid[moving[0]]
    spread = np.ptp(data.geom_xpos[own], axis=0).max()
    assert radius >= max(1.5, 1.4 * spread)
    shot = OrbitShot(target=name)
    first, quat = shot.pose(0.0, compiled, data)
    center = data.xipos[moving[0]]
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, quat)
    away = center - first
    assert -axes.reshape(3, 3)[:, 2] == pytest.approx(away / np.linalg.norm(away))
    data.xipos[moving[0]] += 1.0
    second, _ = shot.pose(0.1, compiled, data)
    moved = second - first - (shot.around(0.1) - shot.around(0.0))
    assert moved == pytest.approx(1.0 - math.exp(-5.0 * 0.1))


@pytest.mark.parametrize("model", ["walker", "quadruped", "dog"])
def test_an_orbit_of_everything_shows_what_moves(model):
    """Film without a target in models with wide floors: the robot is near, also when it moved."""
    compiled = mujoco.MjModel.from_xml_path(str(suite_file(model)))
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    shot = OrbitShot(smoothing=0.0)
    first, _ = shot.pose(0.0, compiled, data)
    assert shot.radius < 6.0 and np.linalg.norm(first - data.subtree_com[1]) < 6.0
    box = everything(compiled, data)
    moving = compiled.body_weldid[compiled.geom_bodyid] > 0
    moving &= (compiled.geom_group <= 2) & (compiled.geom_rgba[:, 3] > 0)
    centers = data.geom_xpos[moving]
    assert (centers >= box[0] - 1e-9).all() and (centers <= box[1] + 1e-9).all()
    data.qpos[compiled.jnt_qposadr[0]] += 5.0  # of the root, along an axis of the world
    mujoco.mj_forward(compiled, data)
    second, _ = shot.pose(0.1, compiled, data)
    turned = shot.around(0.1) - shot.around(0.0)
    assert np.linalg.norm(second - first - turned) > 1.0  # a ball may have stayed


def test_cameras_on_a_body(lab):
    """Follow a body, and see with its eyes: along its x, with its z up."""
    lab.step(5)
    model, data = lab.model, lab.loop.data
    pos, _ = FollowShot(body="ball", offset=(1.0, 0.0, 0.5)).pose(0.0, model, data)
    body = model.body("ball").id
    assert pos == pytest.approx(data.xipos[body] + [1.0, 0.0, 0.5])
    data.qpos[4:8] = [0.9, 0.1, -0.3, 0.2]
    mujoco.mj_forward(model, data)
    pos, quat = FirstPersonShot(body="ball", pos=(0.2, 0.0, 0.0)).pose(0.0, model, data)
    turn, axes = data.xmat[body].reshape(3, 3), np.empty(9)
    mujoco.mju_quat2Mat(axes, quat)
    assert -axes.reshape(3, 3)[:, 2] == pytest.approx(turn[:, 0])
    assert axes.reshape(3, 3)[:, 1] == pytest.approx(turn[:, 2])
    assert pos == pytest.approx(data.xpos[body] + 0.2 * turn[:, 0])


@pytest.mark.parametrize("curve", ["cubic", "linear"])
def test_poses_at_waypoints_are_exact(curve, tmp_path):
    """Sample a path at its waypoints, between and beyond them; write and read it."""
    generator = np.random.default_rng(3)
    points = tuple(
        Waypoint(
            time=float(t), pos=tuple(generator.normal(size=3)), quat=tuple(q / np.linalg.norm(q))
        )
        for t, q in zip((0.5, 1.0, 2.7, 3.1), generator.normal(size=(4, 4)), strict=True)
    )
    path = CameraPath(waypoints=points, curve=curve, delay=0.25)
    for point in points:
        pos, quat = path.pose(0.25 + point.time - 0.5)
        assert pos.tolist() == pytest.approx(list(point.pos), abs=1e-12)
        assert abs(quat @ point.quat) == pytest.approx(1.0, abs=1e-12)
    assert path.duration == pytest.approx(2.85)
    assert path.pose(0.0)[0].tolist() == list(points[0].pos) == path.pose(0.2)[0].tolist()
    assert path.pose(9.0)[0].tolist() == list(points[-1].pos)
    middle = path.pose(0.25 + 0.25)[0]
    straight = np.mean([points[0].pos, points[1].pos], axis=0)
    assert np.allclose(middle, straight) == (curve == "linear")
    steps = np.diff([path.pose(t)[0] for t in np.arange(0.25, 2.85, 0.001)], axis=0)
    assert np.linalg.norm(steps, axis=1).max() < 0.02  # no jump
    looped = CameraPath(waypoints=points, loop=True)
    assert looped.pose(2.6 + 0.5)[0] == pytest.approx(points[1].pos)
    assert CameraPath.load(path.save(tmp_path / "path.json")) == path
    assert path.line().shape[1] == 3


@pytest.mark.parametrize("turn", [0.3, 2.5, -3.0])
def test_the_horizon_stays_level(turn):
    """Turn and tilt between level views: the image does not roll, the view turns evenly."""

    def look(azimuth: float, elevation: float) -> tuple[float, float, float]:
        level = math.cos(elevation)
        return (level * math.cos(azimuth), level * math.sin(azimuth), math.sin(elevation))

    origin = (0.0, 0.0, 0.0)
    ends = [look(0.2, -0.9), look(0.2 + turn, 0.4)]
    points = [Waypoint(time=float(i), pos=origin, look_at=to) for i, to in enumerate(ends)]
    path = CameraPath(waypoints=tuple(points))
    for share in (0.0, 0.25, 0.5, 0.9, 1.0):
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, path.pose(share)[1])
        right, up, back = matrix.reshape(3, 3).T
        assert right[2] == pytest.approx(0.0, abs=1e-12) and up[2] > 0.0
        assert -back == pytest.approx(look(0.2 + share * turn, -0.9 + share * 1.3), abs=1e-12)


def test_wrong_paths_and_shots_are_named(lab, tmp_path):
    """Give waypoints out of order, none, no JSON; shots of what is not there."""
    here = Waypoint(time=1.0, pos=(0.0, 0.0, 1.0), look_at=(1.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="must ascend"):
        CameraPath(waypoints=(here, here))
    with pytest.raises(ValueError, match="has no waypoints: capture a view"):
        CameraPath().pose(0.0)
    with pytest.raises(ValueError, match="either quat or look_at"):
        Waypoint(time=0.0, pos=(0.0, 0.0, 0.0))
    (tmp_path / "bad.json").write_text('{"waypoints": 3}')
    with pytest.raises(ValueError, match="'bad.json' is no camera path"):
        CameraPath.load(tmp_path / "bad.json")
    for shot, words in (
        ({"kind": "spin"}, "no shot 'spin': choose from orbit"),
        ({"kind": "orbit", "target": "nose"}, "no body 'nose'"),
        ({"kind": "orbit", "speeed": 3}, "orbit' cannot be made"),
        ({"kind": "camera", "camera": "eye"}, "no camera 'eye'"),
    ):
        with pytest.raises(ValueError, match=words):
            make_shot(shot, lab.model)


@pytest.mark.slow
@pytest.mark.parametrize("format", ["mp4", "gif"])
def test_a_film_has_all_frames(film_lab, format, capfd):
    """Film the last second: as many frames as rate times length, of the size, and things move."""
    if format == "mp4":
        pytest.importorskip("imageio_ffmpeg")
    film_lab["arm"].write("panel", {"shoulder": 8.0})
    film_lab.step(600)
    film = film_lab.film(
        "last", 1.0, fps=20.0, width=96, height=64, format=format, name="arm",
        shot={"kind": "fixed", "pos": [0.3, -2.0, 0.8], "look_at": [0.2, 0.0, 0.4]},
    )  # fmt: skip
    film_lab.filmer.wait(PATIENCE_S)
    assert film.state == "done" and film.error == film.note == "", film
    assert film.frames == film.drawn == 20 and Path(film.path).name == f"arm.{format}"
    assert capfd.readouterr().err == "", "its program warns of something"
    images = frames_of(film.path)
    if format == "mp4":
        assert len(images) == 20
    assert images[0].shape == (64, 96, 3) and images[0].std() > 5.0
    assert np.abs(images[0].astype(int) - images[-1]).max() > 40


def test_slow_drawing_is_told():
    """Draw slowly, as beside programs that use the processor: the page says how long it takes."""
    film = Film(name="a", source="last", seconds=3.0, fps=30.0, frames=90)
    assert "moved on by 3 s" in _told(film.describe())
    film.note_drawn(0, 100.0)
    film.state = "drawing"
    assert _told(film.describe(104.0)) == "0 of 90 frames after 4 s"
    assert "after 57 s, slow, because drawing gives way" in _told(film.describe(157.0))
    film.note_drawn(1, 160.0)
    assert film.describe(161.0)["left"] is None
    film.note_drawn(3, 162.0)
    assert film.describe(163.0) | {"elapsed": 63.0, "left": 1.5 * 87} == film.describe(163.0)
    assert "about 130 s left" in _told(film.describe(163.0))
    assert "_first" not in film.describe() and film.drawn == 3
    film.state, film.path = "done", "a.mp4"
    assert _told(film.describe()) == "90 frames: a.mp4"


def test_films_of_faults_end_before_them(world, tmp_path):
    """Film the next seconds of a world that faults: the frames before that, and a sentence."""
    cfg = LabCfg(speed=math.inf, recorder=RecorderCfg(folder=tmp_path, to_file=False))
    with LiveLab(world, cfg) as lab:
        lab.pause()
        film = lab.film("next", 2.0, fps=10.0, width=32, height=32, format="gif")
        with pytest.raises(RuntimeError, match="is being made: wait for it, or cancel it"):
            lab.film("last", 1.0)

        def explode(model, data, moved):
            if data.time > 1.0:
                data.qvel[0] = math.nan

        lab.loop.on_pre_step(explode)
        lab.play()
        lab.filmer.wait(PATIENCE_S)
        assert film.state == "done" and "The world stopped" in film.note, film
        assert 9 <= film.frames == film.drawn <= 11


def test_a_film_can_be_canceled(film_lab, tmp_path):
    """Cancel while it waits for steps that never come: nothing is left; a new one can start."""
    film = film_lab.film("next", 5.0)
    film_lab.filmer.cancel()
    assert film.state == "canceled" and list(tmp_path.iterdir()) == []
    for settings, words in (
        ({"source": "lst"}, "is last, next, now or a recording such as 'a.mcap', got 'lst'"),
        ({"width": 3}, "width of a film must be from 16"),
        ({"seconds": 90.0}, "keeps 60 s, which is less than a film of 90 s"),
        ({"fps": 0.0}, "fps of a film"),
        ({"format": "avi"}, "mp4, gif or empty"),
        ({"name": "../x"}, "not a valid name"),
    ):
        with pytest.raises(ValueError, match=words):
            film_lab.film(**settings)


@pytest.mark.slow
def test_a_path_is_filmed(film_lab):
    """Film along a camera path: as many frames as its length, from the view of each waypoint."""
    film_lab.step(700)
    eyes = (0.3, -2.0, 0.8), (2.0, -1.0, 1.4)
    points = tuple(
        Waypoint(time=float(t), pos=eye, look_at=(0.2, 0.0, 0.4)) for t, eye in enumerate(eyes)
    )
    film_lab.filmer.path = CameraPath(waypoints=points)
    size = {"fps": 10.0, "width": 96, "height": 64, "format": "gif"}

    def images(name: str, **kwargs) -> list[np.ndarray]:
        film = film_lab.film("last", name=name, **size, **kwargs)
        film_lab.filmer.wait(PATIENCE_S)
        assert film.state == "done" and film.drawn == film.frames == 10, film
        return [image.astype(float) for image in frames_of(film.path)]

    path = images("path", shot={"kind": "path"})
    still = [
        images(f"still {i}", seconds=1.0, shot={"kind": "fixed", "pos": list(eye),
                                                "look_at": [0.2, 0.0, 0.4]})
        for i, eye in enumerate(eyes)
    ]  # fmt: skip
    apart = np.abs(still[0][0] - still[1][0]).mean()
    assert np.abs(path[0] - still[0][0]).mean() < 0.1 * apart
    assert np.abs(path[0] - still[1][0]).mean() > 0.5 * apart
    assert np.abs(path[-1] - still[1][-1]).mean() < np.abs(path[-1] - still[0][-1]).mean()
