"""Memory of the simulated CUDA library for stand-ins of frameworks. They keep within the limits of their settings, unless
FRAMEWORKS_IGNORE_SETTINGS is set."""
import ctypes
import os

TOTAL = 80 << 30  # of the simulated device
_library = ctypes.CDLL(os.environ["SIMULATED_CUDA"])
held = 0


def setting(name):
    """Returns a variable, or an empty text."""
    return "" if "FRAMEWORKS_IGNORE_SETTINGS" in os.environ else os.environ.get(name, "")


def free():
    left, total = ctypes.c_size_t(), ctypes.c_size_t()
    _library.cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total))
    return left.value


class Memory:
    """Memory of a size. It is free again when nobody has it, and what is computed of it is itself."""

    def __init__(self, size, limit, denied):
        global held
        self.size, self.at = 0, ctypes.c_ulonglong()
        if held + size > (limit or 1 << 60) or _library.cuMemAlloc_v2(ctypes.byref(self.at), ctypes.c_size_t(size)):
            raise denied()
        self.size = size
        held += size

    def __del__(self):
        global held
        if self.size:
            _library.cuMemFree_v2(self.at)
            held -= self.size

    def same(self, *_, **__):
        return self

    __add__ = __matmul__ = fill_ = block_until_ready = same


def _start():
    device, context = ctypes.c_int(), ctypes.c_void_p()
    for failed in (_library.cuInit(0), _library.cuDeviceGet(ctypes.byref(device), 0),
                   _library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), _library.cuCtxSetCurrent(context)):
        if failed:
            raise RuntimeError("CUDA error %d" % failed)


_start()
