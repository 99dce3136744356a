// Package world is a random world for the guard's step: containers that
// allocate, fork and exit on devices whose readings fail in every way a driver's
// do. It knows what is true, and counts every termination that the truth does not
// call for.
//
// It imports guard and guard/limits only.
package world
