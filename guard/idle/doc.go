// Package idle decides in which slices of a node's pods nothing runs, from the
// driver's reports and the devices' lists.
//
// The one idea: Step is pure, and doubt is use. A container is idle only for as
// long as it is certain of every device that nothing of the container ran there;
// any unreadable or unattributed use starts the time over. Owners are notified
// before anything of theirs is terminated, and use that the driver cannot
// distinguish from nothing delays the termination, not the notice.
//
// The package imports packages of guard, and no Kubernetes package.
package idle
