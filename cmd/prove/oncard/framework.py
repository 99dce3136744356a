"""Does with a framework what the first argument names, prints one line of JSON, and holds all until its input ends."""
import gc
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


def model():
    """Returns the path of the model's folder, its config.json, and how many requests of how many tokens it serves."""
    path = os.environ["GPUSLICE_CARD_MODEL"]
    with open(os.path.join(path, "config.json")) as f:
        return path, json.load(f), int(os.environ["GPUSLICE_CARD_REQUESTS"]), int(os.environ["GPUSLICE_CARD_TOKENS"])


def torch_model(torch):
    """Takes a tensor for each matrix and norm of a Llama, and for the keys and values of each layer."""
    _, m, requests, tokens = model()
    dtype, width, inner = getattr(torch, m["torch_dtype"]), m["hidden_size"], m["intermediate_size"]
    queries, keys = m["num_attention_heads"] * m["head_dim"], m["num_key_value_heads"] * m["head_dim"]
    attention = [(queries, width), (keys, width), (keys, width), (width, queries)]
    layer = attention + [(inner, width), (inner, width), (width, inner), (width,), (width,)]
    shapes = 2 * [(m["vocab_size"], width)] + m["num_hidden_layers"] * layer + [(width,)]
    weights = [torch.empty(shape, dtype=dtype, device="cuda") for shape in shapes]
    taken = torch.cuda.memory_allocated()
    cache = [torch.empty((2, requests * tokens, keys), dtype=dtype, device="cuda") for _ in range(m["num_hidden_layers"])]
    return (weights, cache), taken, torch.cuda.memory_allocated() - taken


def transformers_model(torch):
    """Has the library build the model, and fill its cache. The cache is what is free once nobody has it: a product takes room, too."""
    from transformers import AutoConfig, AutoModelForCausalLM

    path, _, requests, tokens = model()
    built = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(path)).to("cuda", torch.bfloat16)
    taken = torch.cuda.memory_allocated()
    with torch.no_grad():
        answer = built.model(torch.zeros((requests, tokens), dtype=torch.long, device="cuda"), use_cache=True)
    cache = answer.past_key_values
    del answer
    gc.collect()
    both = torch.cuda.memory_allocated()
    del cache
    gc.collect()
    return built, taken, both - torch.cuda.memory_allocated()


def fill(allocate, *out_of_memory):
    """Takes piece after piece of 32 MiB until the allocator denies one, or the bound is reached."""
    held = []
    while len(held) * 32 * MIB < BOUND:
        try:
            held.append(allocate(32 * MIB))
        except out_of_memory:
            return held, True
    return held, False


def with_torch(task):
    import torch

    account = {"version": torch.__version__}
    if task == "torch-fill":
        held, account["outOfMemory"] = fill(lambda n: torch.empty(n, dtype=torch.uint8, device="cuda"), torch.cuda.OutOfMemoryError)
    elif task == "torch-model":
        held, account["weights"], account["cache"] = torch_model(torch)
    elif task == "transformers-model":
        held, account["weights"], account["cache"] = transformers_model(torch)
        account["version"] = sys.modules["transformers"].__version__
    else:
        held = {"torch-tensor": torch_tensor, "torch-graph": torch_graph, "torch-product": torch_product}[task](torch)
    torch.cuda.synchronize()
    account["reserved"] = torch.cuda.memory_reserved()
    return held, account


def with_jax():
    import jax
    import jax.numpy as jnp

    if jax.default_backend() != "gpu":
        raise RuntimeError("JAX uses no GPU")
    denied = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
    held, denied = fill(lambda n: jnp.ones(n, dtype=jnp.uint8).block_until_ready(), denied)
    return held, {"version": jax.__version__, "reserved": 32 * MIB * len(held), "outOfMemory": denied}


def with_tensorflow():
    import tensorflow

    if not tensorflow.config.list_physical_devices("GPU"):
        raise RuntimeError("TensorFlow uses no GPU")
    with tensorflow.device("GPU:0"):
        held, denied = fill(lambda n: tensorflow.ones([n // 4]), tensorflow.errors.ResourceExhaustedError)
    return held, {"version": tensorflow.__version__, "reserved": 32 * MIB * len(held), "outOfMemory": denied}


def with_cupy():
    import cupy

    held, denied = fill(lambda n: cupy.ones(n, dtype=cupy.uint8), cupy.cuda.memory.OutOfMemoryError)
    return held, {"version": cupy.__version__, "reserved": cupy.get_default_memory_pool().total_bytes(), "outOfMemory": denied}


try:
    framework = {"jax-fill": with_jax, "tensorflow-fill": with_tensorflow, "cupy-fill": with_cupy}.get(sys.argv[1])
    kept, account = framework() if framework else with_torch(sys.argv[1])
    account["version"] = str(account["version"])
except Exception as e:
    account = {"failure": "%s: %s" % (type(e).__name__, e)}
print(json.dumps(account), flush=True)
sys.stdin.read()
