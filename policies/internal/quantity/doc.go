// Package quantity reads and writes amounts of GPU memory, fractions of a GPU and counts of GPUs.
package quantity
