// Package deviceplugin offers devices of a resource to the kubelet of a node.
//
// The one idea: the scheduler places a pod that requests one only where somebody
// offers it. The devices stand for nothing that a container gets.
package deviceplugin
