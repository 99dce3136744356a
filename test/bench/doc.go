// Package bench measures gpuslice. Nothing here asserts a speed: the benchmarks print medians and ratios of one run, so
// that a figure stands beside its baseline.
package bench
