"""Does with a framework what the first argument names, prints one line of JSON, and holds all until its input ends."""
import json
import os
import sys

MIB = 1 << 20
BOUND = int(os.environ.get("GPUSLICE_CARD_BOUND", 8 << 30))  # bytes that a fill takes at most


def torch_tensor(torch):
    return torch.empty(512 * MIB, dtype=torch.uint8, device="cuda").fill_(1)


def torch_graph(torch):
    held = torch_tensor(torch)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        held + 1
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = held + 1
    graph.replay()
    return held, graph, result


def torch_product(torch):
    a = torch.ones(1024, 1024, device="cuda")
    return a, a @ a


def fill(allocate, out_of_memory):
    """Takes piece after piece of 32 MiB until the allocator denies one, or the bound is reached."""
    held = []
    while len(held) * 32 * MIB < BOUND:
        try:
            held.append(allocate(32 * MIB))
        except out_of_memory:
            return held, True
    return held, False


def main(task):
    if task.startswith("torch"):
        import torch

        denied = False
        if task == "torch-fill":
            held, denied = fill(lambda n: torch.empty(n, dtype=torch.uint8, device="cuda"), torch.cuda.OutOfMemoryError)
        else:
            held = {"torch-tensor": torch_tensor, "torch-graph": torch_graph, "torch-product": torch_product}[task](torch)
        torch.cuda.synchronize()
        return held, torch.__version__, torch.cuda.memory_reserved(), denied
    if task == "jax-fill":
        import jax
        import jax.numpy as jnp

        held, denied = fill(lambda n: jnp.ones(n, dtype=jnp.uint8).block_until_ready(), jax.errors.JaxRuntimeError)
        return held, jax.__version__, 32 * MIB * len(held), denied
    import cupy

    held, denied = fill(lambda n: cupy.ones(n, dtype=cupy.uint8), cupy.cuda.memory.OutOfMemoryError)
    return held, cupy.__version__, cupy.get_default_memory_pool().total_bytes(), denied


try:
    kept, version, reserved, denied = main(sys.argv[1])
    account = {"version": str(version), "reserved": int(reserved), "outOfMemory": denied}
except Exception as e:
    account = {"failure": "%s: %s" % (type(e).__name__, e)}
print(json.dumps(account), flush=True)
sys.stdin.read()
