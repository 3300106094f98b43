"""Video files."""

import numpy as np
import pytest

import manyworlds.viewer.video as video
from manyworlds.viewer.video import write_video

Image = pytest.importorskip("PIL.Image", reason="needs Pillow, of the extra 'train'")


def _frames(count: int, height: int = 24, width: int = 32):
    """A white bar that moves over a dark ground."""
    for i in range(count):
        frame = np.full((height, width, 3), 40, np.uint8)
        frame[:, i % width] = 255
        yield frame


@pytest.fixture
def no_encoder(monkeypatch):
    """Do as if imageio-ffmpeg were not installed."""
    monkeypatch.setattr(video, "_ffmpeg", lambda: None)


def _durations(path) -> list[int]:
    with Image.open(path) as image:
        durations = []
        for i in range(image.n_frames):
            image.seek(i)
            durations.append(image.info["duration"])
    return durations


def test_gif(tmp_path, no_encoder):
    """Write every frame of a slow video, for the right time each."""
    path = write_video(tmp_path / "run-1.5", _frames(12), fps=10)
    assert path == tmp_path / "run-1.5.gif"
    assert _durations(path) == [100] * 12
    assert [p.name for p in tmp_path.iterdir()] == ["run-1.5.gif"]


@pytest.mark.parametrize(("fps", "frames"), [(30, 45), (50, 50), (60, 90), (200, 201)])
def test_gif_speed(tmp_path, no_encoder, fps, frames):
    """Drop frames above 25 per second and keep the playing time."""
    path = write_video(tmp_path / "run", _frames(frames, width=512), fps=fps)
    durations = _durations(path)
    assert len(durations) <= 25 * frames / fps + 1
    assert sum(durations) == pytest.approx(1000 * frames / fps, abs=10)
    assert max(durations[:-1]) - min(durations[:-1]) <= 10


def test_gif_colors(tmp_path, no_encoder):
    """Keep the colors of late frames, too."""
    frames = [np.full((16, 16, 3), color, np.uint8) for color in ((250, 0, 0), (0, 0, 250))]
    path = write_video(tmp_path / "run", frames, fps=10)
    with Image.open(path) as image:
        image.seek(1)
        last = np.asarray(image.convert("RGB"))
    assert np.abs(last.astype(int) - frames[1]).max() <= 8


@pytest.mark.parametrize("size", [(24, 32), (25, 33)])
def test_mp4(tmp_path, size):
    """Write every frame at the speed asked for where the encoder is installed."""
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs the extra 'video'")
    path = write_video(tmp_path / "run", _frames(20, *size), fps=10)
    assert path == tmp_path / "run.mp4"
    count, seconds = ffmpeg.count_frames_and_secs(str(path))
    assert count == 20
    assert seconds == pytest.approx(2.0, abs=0.05)
    assert [p.name for p in tmp_path.iterdir()] == ["run.mp4"]


@pytest.mark.parametrize("encoder", [True, False])
def test_failure_leaves_nothing(tmp_path, monkeypatch, encoder):
    """Remove the unfinished file when a frame cannot be made; keep an older video."""
    if encoder:
        pytest.importorskip("imageio_ffmpeg", reason="needs the extra 'video'")
    else:
        monkeypatch.setattr(video, "_ffmpeg", lambda: None)
    name = "run.mp4" if encoder else "run.gif"
    (tmp_path / name).write_bytes(b"older")

    def frames():
        yield from _frames(5)
        raise RuntimeError("the simulation failed")

    with pytest.raises(RuntimeError, match="the simulation failed"):
        write_video(tmp_path / "run", frames(), fps=10)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"older"


def test_failed_write_leaves_nothing(tmp_path, monkeypatch, no_encoder):
    """Remove the unfinished file when writing it fails."""

    def fail(path, images, fps):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(video, "write_gif", fail)
    with pytest.raises(OSError, match="disk full"):
        write_video(tmp_path / "run", _frames(2), fps=10)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 10, "got no frames"),
        ([np.zeros((4, 4, 3))], 10, "Frame 0 must be a uint8 image .* got float64"),
        ([np.zeros((4, 4), np.uint8)], 10, r"\(height, width, 3\)"),
        (
            [np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)],
            10,
            r"Frame 1 .* \(4, 4, 3\), got uint8 \(4, 6, 3\)",
        ),
        ([np.zeros((4, 4, 3), np.uint8)], 0, "fps > 0, got 0"),
    ],
)
def test_bad_input(tmp_path, no_encoder, frames, fps, message):
    """Say what is wrong with the frames, and write nothing."""
    with pytest.raises(ValueError, match=message):
        write_video(tmp_path / "run", frames, fps=fps)
    assert list(tmp_path.iterdir()) == []


def test_without_any_writer(tmp_path, monkeypatch, no_encoder):
    """Name the install command where no package can write a video."""
    import importlib

    real = importlib.import_module

    def missing(name, *args):
        if name == "PIL":
            raise ModuleNotFoundError("No module named 'PIL'", name="PIL")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"pip install 'manyworlds-rl\[train\]'"):
        write_video(tmp_path / "run", _frames(2), fps=10)
    assert list(tmp_path.iterdir()) == []
