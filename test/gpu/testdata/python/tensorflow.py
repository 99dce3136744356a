"""Stands in for TensorFlow, whose limit counts from what is free at its start."""
from types import SimpleNamespace
from unittest import mock

import simulated

__version__ = "2.21.0"
errors = SimpleNamespace(ResourceExhaustedError=type("ResourceExhaustedError", (RuntimeError,), {}))
device = mock.MagicMock()
config = mock.Mock(list_physical_devices=lambda kind: [kind])
_headroom = int(simulated.setting("TF_DEVICE_MIN_SYS_MEMORY_IN_MB") or 0) << 20
_limit = simulated.free() - _headroom if _headroom < simulated.free() else 0


def ones(shape):
    return simulated.Memory(4 * shape[0], _limit, errors.ResourceExhaustedError)
