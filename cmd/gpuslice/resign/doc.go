// Package resign is the command that signs the promises of living pods again after the keys that signed them were lost,
// so that the pods count as their slices again and not as whole devices.
package resign
