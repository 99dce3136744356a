package oncard

import "context"

// row is one sentence, and how it is tried.
type row struct {
	number   int
	sentence string
	run      func(context.Context, *card) []check
}

// rows returns all of them, first the rows that most of the product rests on.
func rows() []row {
	return []row{
		{1, "NVML's memory of a process is what it holds, and its context", reported},
		{2, "The guard terminates a process past its slice, and no other", guarded},
		{7, "A process has at most 512Mi outside its allocator", contexts},
		{8, "Sampling is fast, and costs the neighbors nothing", sampling},
		{5, "An MPS daemon limits, lists and terminates its clients", daemon},
		{6, "NVML counts memory of other allocators, and shared memory", allocators},
		{10, "The driver reports a cgroup's memory and limit", charged},
		{3, "PyTorch stays within its fraction", pytorch},
		{4, "JAX, TensorFlow and CuPy stay within their limits", frameworks},
		{9, "gpuslice estimate has a model's weights and KV cache", estimated},
	}
}
