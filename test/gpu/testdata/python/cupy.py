"""Stands in for CuPy."""
from unittest import mock

import simulated

__version__, uint8 = "14.0.0", 1
cuda = mock.MagicMock()
cuda.memory.OutOfMemoryError = type("OutOfMemoryError", (MemoryError,), {})


def ones(n, dtype=8):
    return simulated.Memory(n * dtype, int(simulated.setting("CUPY_GPU_MEMORY_LIMIT") or 0), cuda.memory.OutOfMemoryError)


def get_default_memory_pool():
    return mock.Mock(total_bytes=lambda: simulated.held)
