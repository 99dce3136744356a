// Package cuda holds GPU memory by CUDA's driver API, which it loads at run time:
// it needs the driver's library and no toolkit. It is for
// cmd/prove, which tries the limits of a program's slice, and what is true on a card.
package cuda
