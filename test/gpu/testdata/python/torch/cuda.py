"""Stands in for torch.cuda."""
import os
import re
from unittest import mock

import simulated

Stream = stream = current_stream = CUDAGraph = graph = mock.MagicMock()
_fraction = 0
_calls = []


class OutOfMemoryError(RuntimeError):
    pass


def _lazy_call(call):
    _calls.append(call)


def limit():
    """Returns the bytes that may be taken, and does first what waited for the first use of CUDA."""
    while _calls:
        _calls.pop()()
    of = re.search("per_process_memory_fraction:([0-9.]+)", simulated.setting("PYTORCH_CUDA_ALLOC_CONF"))
    if of and os.environ.get("TORCH_VERSION", "2.10").startswith("2.10"):
        return float(of.group(1)) * simulated.TOTAL
    return _fraction * simulated.TOTAL


def set_per_process_memory_fraction(fraction, device=None):
    global _fraction
    _fraction = 0 if "FRAMEWORKS_IGNORE_SETTINGS" in os.environ else fraction


def get_device_properties(device):
    return mock.Mock(total_memory=simulated.TOTAL)


def device_count():
    return 1


def current_device():
    return 0


def memory_allocated():
    return simulated.held


memory_reserved = memory_allocated


def synchronize():
    pass
