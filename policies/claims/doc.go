// Package claims has the ResourceClaimTemplates of slices, their names, and the expressions by which a DeviceClass selects devices.
//
// The one idea: a template's name determines all of its content. So it does not matter who writes a template or when,
// any number of pods share one, and the API server can compare the two without calling gpuslice.
//
// Expressions of classes are not evaluated: only the driver, type and profile of a device are known.
package claims
