// Package bypass ends the bypasses of namespaces: the label by which the API server stops asking gpuslice, and by which
// gpuslice stops refusing, goes when its time has passed. While it lasts, an Event and metrics say so.
//
// A bypass has to work while gpuslice does not, so it is nothing but labels and annotations that selectors and people
// read. Its end needs gpuslice: where that is down the whole time, the bypass lasts until it is back.
package bypass
