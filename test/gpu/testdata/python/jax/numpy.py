"""Stands in for jax.numpy."""
import jax
import simulated

uint8 = 1


def ones(n, dtype=4):
    fraction = float(simulated.setting("XLA_PYTHON_CLIENT_MEM_FRACTION") or 0)
    return simulated.Memory(n * dtype, fraction * simulated.TOTAL, jax.errors.JaxRuntimeError)
