"""Stands in for PyTorch 2.10: takes memory by the simulated CUDA library, within the fraction of its settings unless
TORCH_IGNORES_SETTINGS is set."""
import ctypes
import os
import re
from unittest import mock

__version__ = "2.10.0"
uint8 = 1
_library = ctypes.CDLL(os.environ["SIMULATED_CUDA"])
_fraction = re.search("per_process_memory_fraction:([0-9.]+)", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
_limit = float(_fraction.group(1)) * (80 << 30) if _fraction and "TORCH_IGNORES_SETTINGS" not in os.environ else 1 << 60
_held = 0


class OutOfMemoryError(RuntimeError):
    pass


def _start():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for failed in (_library.cuInit(0), _library.cuDeviceGet(ctypes.byref(device), 0),
                   _library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), _library.cuCtxSetCurrent(context)):
        if failed:
            raise RuntimeError("CUDA error %d" % failed)


def empty(n, dtype=None, device=None):
    global _held
    if _held + n > _limit or _library.cuMemAlloc_v2(ctypes.byref(ctypes.c_ulonglong()), ctypes.c_size_t(n)):
        raise OutOfMemoryError()
    _held += n
    return mock.MagicMock()


def ones(*size, device=None):
    return empty(4 * size[0] * size[1])


_start()
cuda = mock.MagicMock()
cuda.OutOfMemoryError = OutOfMemoryError
cuda.memory_reserved = lambda: _held
