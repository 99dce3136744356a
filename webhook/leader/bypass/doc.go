// Package bypass ends the bypasses of namespaces: when its time has passed, it removes the label by which the API server
// stops calling gpuslice and gpuslice stops denying. While a bypass lasts, an Event and metrics report it.
//
// A bypass has to work while gpuslice does not, so it is nothing but labels and annotations, which selectors and people
// read. Its end needs gpuslice: while gpuslice is down, a bypass lasts on.
package bypass
