"""Detection of writes to a tensor."""

from __future__ import annotations

import torch


class WriteMark:
    """Tells whether a tensor was written in place, or replaced by another one."""

    def __init__(self) -> None:
        self._tensor: torch.Tensor | None = None
        self._version = -1

    def moved(self, tensor: torch.Tensor) -> bool:
        """Return whether this is another tensor than in the last call, or was written since."""
        # The dispatch of the subclass costs more than the rest of this function.
        with torch._C.DisableTorchFunctionSubclass():
            version = tensor._version
        same = self._tensor is tensor and self._version == version
        self._tensor = tensor
        self._version = version
        return not same
