// Package gpu has the results of "make gpu" on cards, and rehearses it: cmd/prove/oncard runs against the simulated libraries, with
// stand-ins of frameworks and of NVIDIA's MPS control program. Each sentence is turned false, and its row has to fail.
package gpu
