"""Video files: MP4 where the encoder is installed, else an animated GIF."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

import numpy as np

from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import atomic_path

Format = Literal["", "mp4", "gif"]
"""Format of a video; empty takes MP4 where the encoder is installed, else GIF."""
_GIF_MAX_FPS = 25.0
_GIF_COLORS = 128
_PALETTE_FRAMES = 8


def check_format(format: Format) -> Format:
    """Return the format of new videos: the given one, or the best that is installed.

    Raises:
        ValueError: there is no such format.
        MissingExtraError: its encoder is not installed.
    """
    if format not in get_args(Format):
        raise ValueError(f"The format of a video must be mp4, gif or empty, got '{format}'.")
    if format == "mp4" and _ffmpeg() is None:
        require_extra("imageio_ffmpeg", "video")
        raise ValueError("The video encoder of imageio-ffmpeg is missing: use the format 'gif'.")
    if format:
        return format
    if _ffmpeg() is None:
        return "gif"
    return "mp4"


def write_video(
    path_stem: Path, frames: Iterable[np.ndarray], fps: float, format: Format = ""
) -> Path:
    """Write frames to `<path_stem>.mp4`, or to `<path_stem>.gif` without `imageio-ffmpeg`.

    The file appears under its name only when it is complete.

    Args:
        path_stem: folder and file name without a suffix.
        frames: uint8 RGB images, all of one shape (height, width, 3).
        fps: frames per second of playback [1/s]. A GIF drops frames above 25 per second and keeps
            the speed.
        format: see `check_format`.

    Returns:
        The path of the file.

    Raises:
        ValueError: there are no frames, or one is not an image of the shape of the first.
    """
    if not (math.isfinite(fps) and fps > 0):
        raise ValueError(f"write_video needs fps > 0, got {fps}.")
    path_stem = Path(path_stem)
    checked = _checked(frames)
    first = next(checked, None)
    if first is None:
        raise ValueError(f"write_video got no frames for '{path_stem}': give at least one.")
    images = chain([first], checked)
    format = check_format(format)
    ffmpeg = _ffmpeg()
    path = path_stem.with_name(f"{path_stem.name}.{format}")
    with atomic_path(path) as partial:
        if format == "gif" or ffmpeg is None:
            write_gif(partial, images, fps)
        else:
            _write_mp4(ffmpeg, partial, images, first.shape, fps)
    return path


def _checked(frames: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield frames after checking their shape and type."""
    shape = None
    for i, frame in enumerate(frames):
        shape = shape or frame.shape
        wanted: object = shape
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8:
            wanted = "(height, width, 3)"
        if frame.shape != wanted:
            raise ValueError(
                f"Frame {i} must be a uint8 image of shape {wanted}, got {frame.dtype} "
                f"{frame.shape}."
            )
        yield np.ascontiguousarray(frame)


def _ffmpeg() -> ModuleType | None:
    """Return the optional encoder package, or None if it or its program is missing."""
    if importlib.util.find_spec("imageio_ffmpeg") is None:
        return None
    import imageio_ffmpeg  # pyright: ignore[reportMissingImports]

    try:
        imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError:
        return None
    return imageio_ffmpeg


def _write_mp4(
    ffmpeg: ModuleType, path: Path, images: Iterable[np.ndarray], shape: tuple[int, ...], fps: float
) -> None:
    """Encode a video in a process of ffmpeg."""
    writer = ffmpeg.write_frames(
        str(path),
        (shape[1], shape[0]),
        fps=fps,
        macro_block_size=2,
        output_params=["-f", "mp4"],
        ffmpeg_log_level="error",
    )
    try:
        writer.send(None)
        for image in images:
            writer.send(image)
    finally:
        writer.close()
    if not path.exists() or path.stat().st_size == 0:
        raise RuntimeError(f"The video encoder wrote nothing to '{path}': see its messages above.")


def write_gif(path: Path, images: Iterable[np.ndarray], fps: float) -> None:
    """Write frames to an animated GIF; see `write_video`."""
    require_extra("PIL", "train")
    from PIL import Image

    stride = math.ceil(fps / _GIF_MAX_FPS)
    kept = []
    count = 0
    for image in images:
        if count % stride == 0:
            kept.append(image)
        count += 1
    # One palette for all frames avoids flicker, and only changes are stored.
    sample = kept[:: math.ceil(len(kept) / _PALETTE_FRAMES)]
    palette = Image.fromarray(np.concatenate(sample)).quantize(_GIF_COLORS)
    pictures = [
        Image.fromarray(image).quantize(palette=palette, dither=Image.Dither.NONE) for image in kept
    ]
    # A GIF counts hundredths of a second. Rounding the times, not the durations, keeps the speed.
    starts = [round(100 * i / fps) for i in (*range(0, count, stride), count)]
    pictures[0].save(
        path,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=[10 * max(b - a, 1) for a, b in pairwise(starts)],
        loop=0,
    )
