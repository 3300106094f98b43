"""Images of cameras, with all that is needed to interpret them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from manyworlds.lab.pictures.camera import Kind
from manyworlds.utils.extras import require_extra

_HUE_STEP = 0.61803398875  # neighboring ids have different colors


@dataclass(frozen=True, eq=False, kw_only=True)
class ImageInfo:
    """Description of an image of a camera, of the moment of one snapshot."""

    camera: str
    kind: Kind
    frame_id: int
    """Number of the snapshot."""
    step: int
    """Number of physics steps since the lab was created."""
    time: float
    """Simulated time [s]."""
    intrinsics: tuple[float, float, float, float]
    """Focal lengths fx, fy, and principal point cx, cy, from the left and top edge of the image:
    a pixel's center is half a pixel from its edges [pixel]. If `orthographic`, fx and fy are in
    pixels per meter."""
    pos: tuple[float, float, float]
    """Position of the camera in the world [m]."""
    quat: tuple[float, float, float, float]
    """Orientation of the camera in the world (wxyz): x is right, y up, and -z forward."""
    near: float
    """Distance from which objects are drawn [m]."""
    far: float
    """Distance up to which objects are drawn [m]."""
    orthographic: bool = False
    entities: tuple[str, ...] = ()
    """Names of the entities, by their ids in an image of kind `entity`."""

    @classmethod
    def from_header(cls, header: Mapping[str, object], **image: object) -> Self:
        """Return the image that `header` described.

        Args:
            header: the description.
            **image: the fields that only this class has.
        """
        names = ("camera", "kind", "frame_id", "step", "time", "near", "far", "orthographic")
        told: dict[str, Any] = dict(header)
        fields: dict[str, Any] = {name: told[name] for name in names} | image
        return cls(
            **fields,
            intrinsics=(told["fx"], told["fy"], told["cx"], told["cy"]),
            pos=tuple(told["pos"]),
            quat=tuple(told["quat"]),
            entities=tuple(told.get("entities", ())),
        )

    def _describe(self, width: int, height: int, channels: int, dtype: str) -> dict[str, object]:
        fx, fy, cx, cy = self.intrinsics
        header: dict[str, object] = {
            "camera": self.camera,
            "kind": self.kind,
            "width": width,
            "height": height,
            "channels": channels,
            "dtype": dtype,
            "frame_id": self.frame_id,
            "step": self.step,
            "time": self.time,
            "fx": fx,
            "fy": fy,
            "cx": cx,
            "cy": cy,
            "pos": list(self.pos),
            "quat": list(self.quat),
            "near": self.near,
            "far": self.far,
            "orthographic": self.orthographic,
        }
        if self.kind == "depth":
            header["unit"] = "m"
        if self.kind == "entity":
            header["entities"] = list(self.entities)
        return header


@dataclass(frozen=True, eq=False, kw_only=True)
class JpegImage(ImageInfo):
    """One image of a camera as a JPEG file, for people."""

    width: int
    """Number of columns."""
    height: int
    """Number of rows."""
    channels: int
    """Number of values of a pixel of the image that the file is made of."""
    dtype: str
    """Type of these values."""
    data: bytes
    """The JPEG file."""

    def header(self) -> dict[str, object]:
        """Return the header of the image that the file is made of; see `CameraImage.header`."""
        return self._describe(self.width, self.height, self.channels, self.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class CameraImage(ImageInfo):
    """One image of a camera."""

    image: np.ndarray
    """`rgb`: uint8, shape (height, width, 3). `depth`: float32 [m], shape (height, width); `far`
    where no object is seen. `segmentation`: int32, shape (height, width, 2). Others: int32, shape
    (height, width)."""

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.image.shape[1]

    @property
    def height(self) -> int:
        """Number of rows."""
        return self.image.shape[0]

    @property
    def channels(self) -> int:
        """Number of values of a pixel."""
        return self.image.shape[2] if self.image.ndim == 3 else 1

    def header(self) -> dict[str, object]:
        """Return all but the pixels as plain data; `decode_image` needs nothing else."""
        return self._describe(self.width, self.height, self.channels, self.image.dtype.name)

    def to_jpeg(self) -> JpegImage:
        """Return the image with `picture` as a JPEG file."""
        header = self.header()
        sizes = {name: header[name] for name in ("width", "height", "channels", "dtype")}
        return JpegImage.from_header(header, **sizes, data=self.jpeg())

    def to_bytes(self) -> bytes:
        """Return the pixels, row by row from the top, little-endian."""
        return self.image.astype(self.image.dtype.newbyteorder("<"), copy=False).tobytes()

    def picture(self) -> np.ndarray:
        """Return the image for people: uint8 RGB, shape (height, width, 3).

        Near points of depth images are light; ids have colors, and no object is black.
        """
        if self.kind == "rgb":
            return self.image
        if self.kind == "depth":
            seen = self._seen
            low, high = self.depths()
            light = 1.0 - 0.8 * (self.image - low) / max(high - low, 1e-9)
            gray = np.where(seen, 255.0 * light, 0.0).astype(np.uint8)
            return np.repeat(gray[..., None], 3, axis=2)
        ids = self.image
        if ids.ndim == 3:  # id and type
            ids = ids @ np.array([1, 1009], np.int32)
        unique, places = np.unique(ids, return_inverse=True)
        hues = (unique[:, None] * _HUE_STEP + np.array([0.0, 1 / 3, 2 / 3])) % 1.0
        colors = (255.0 * (0.3 + 0.7 * np.abs(2.0 * hues - 1.0))).astype(np.uint8)
        colors[unique < 0] = 0
        return colors[places.reshape(ids.shape)]

    @property
    def _seen(self) -> np.ndarray:
        """Mask of the pixels of a depth image where an object is seen, shape (height, width)."""
        return self.image < 0.999 * self.far

    def depths(self) -> tuple[float, float]:
        """Return the nearest and the farthest depth that is seen in a depth image [m]."""
        depths = self.image[self._seen]
        if not len(depths):
            return 0.0, 1.0
        return float(depths.min()), float(depths.max())

    def jpeg(self, quality: int = 85) -> bytes:
        """Return `picture` as a JPEG file.

        Raises:
            MissingExtraError: the extra 'lab' is not installed.
        """
        pillow = require_extra("PIL.Image", "lab")
        stream = io.BytesIO()
        pillow.fromarray(self.picture()).save(stream, "jpeg", quality=quality)
        return stream.getvalue()


def decode_image(header: Mapping[str, object], data: bytes | bytearray | memoryview) -> np.ndarray:
    """Return the array of `CameraImage.to_bytes`.

    Args:
        header: header of the image.
        data: its pixels.

    Returns:
        The image, shape (height, width) or (height, width, channels).
    """
    height, width, channels = (int(str(header[key])) for key in ("height", "width", "channels"))
    image = np.frombuffer(data, np.dtype(str(header["dtype"])).newbyteorder("<"))
    if channels > 1:
        return image.reshape(height, width, channels)
    return image.reshape(height, width)
