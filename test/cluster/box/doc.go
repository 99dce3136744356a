// Package box makes a throw-away machine out of namespaces, for a test that runs a whole Kubernetes node.
//
// Run starts the calling program again, with the same arguments, inside mount, network, process, host
// name, IPC and cgroup namespaces of its own. Inside there is an empty /run, /var/lib and /var/log whose
// changes vanish, one network interface with the node's address, and a cgroup tree whose root is an empty
// group. Nothing of it can be seen from outside but that group and one folder; both go when the program
// ends, and if all of it is killed, the next Run removes them.
//
// The program inside is an ordinary child of a small process number 1, which is this program too. Both
// cgroup v1 and v2 are written for; no run on a machine with v2 has been recorded, see cgroup.go.
package box
