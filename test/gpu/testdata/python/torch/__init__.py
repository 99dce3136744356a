"""Stands in for PyTorch, of the version in TORCH_VERSION. The limit of its settings is read from 2.10 on."""
import math
import os
from unittest import mock

import simulated

__version__ = os.environ.get("TORCH_VERSION", "2.10.0")
uint8, bfloat16, long = 1, 2, 8  # bytes
no_grad = mock.MagicMock()

from torch import cuda  # noqa: E402


def empty(size, dtype=4, device=None):
    n = dtype * (math.prod(size) if isinstance(size, tuple) else size)
    return simulated.Memory(n, cuda.limit(), cuda.OutOfMemoryError)


def ones(*size, device=None):
    return empty(size)


def zeros(size, dtype=4, device=None):
    return empty(size, dtype)
