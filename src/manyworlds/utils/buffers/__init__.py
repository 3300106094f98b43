"""What was: a history of each world, and a delay of random length."""

from manyworlds.utils.buffers.circular_buffer import CircularBuffer
from manyworlds.utils.buffers.delay_buffer import DelayBuffer

__all__ = ["CircularBuffer", "DelayBuffer"]
