// Package proof is what was found when a program of ours went past its slice in each way that CUDA has: by what it was
// held, and what follows from that. It reads no device.
package proof
