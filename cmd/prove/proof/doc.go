// Package proof is the result of a program of ours that went past its slice in each
// way that CUDA has: the limits that stopped it, and the conclusions. It reads no
// device.
package proof
