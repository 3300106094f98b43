"""Float32 tensors over the float64 arrays of the native engine."""

from __future__ import annotations

import numpy as np
import torch

from manyworlds.sim.fields.shared import MATRIX_SHAPES

_ALL = slice(None)
_TORCH_DTYPES = {"f": np.float32, "i": np.int32, "u": np.uint8, "b": np.bool_}


class Float32Shadow:
    """A float32 tensor over one float64 array of the batch."""

    __slots__ = ("array", "buffer", "tensor", "version")

    def __init__(self, array: np.ndarray, shape: tuple[int, ...], dtype: type | None = None):
        self.array = array.reshape(shape)
        self.buffer = np.empty(shape, dtype or _TORCH_DTYPES[array.dtype.kind])
        # A tensor created in inference mode has no version counter and refuses later writes.
        with torch.inference_mode(False):
            self.tensor = torch.from_numpy(self.buffer)
        with np.errstate(over="ignore"):
            self.pull()

    def pull(self, rows: np.ndarray | slice = _ALL) -> None:
        """Refresh some rows of the tensor from the batch, all by default."""
        self.buffer[rows] = self.array[rows]
        self.version = self.tensor._version

    def refresh(self, rows: np.ndarray | slice = _ALL) -> None:
        """Pull recomputed values, and raise the version by which caches detect changes."""
        self.tensor[:0].zero_()  # counts as a write, which numpy's to the buffer do not
        self.pull(rows)

    def changed(self) -> np.ndarray:
        """Return a mask of the elements that the user changed, with the shape of the tensor."""
        # An element equal to the rounded record keeps its exact double-precision value.
        return self.array.astype(self.buffer.dtype) != self.buffer

    def push(self, changed: np.ndarray) -> None:
        """Write the elements of a mask to the batch."""
        # Only these: a float32 value would replace the exact one of an element that nobody wrote.
        np.copyto(self.array, self.buffer, where=changed, casting="unsafe")
        self.version = self.tensor._version


def engine_shape(field: str, array: np.ndarray) -> tuple[int, ...]:
    """Return the shape that both engines give a field; MuJoCo C stores matrices flat."""
    if field in MATRIX_SHAPES:
        return (*array.shape[:2], *MATRIX_SHAPES[field])
    return array.shape
