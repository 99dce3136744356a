// Package controllers runs the controllers of other projects with the settings of our pages on them: what their pods, and those that
// they hold, get from gpuslice.
package controllers
