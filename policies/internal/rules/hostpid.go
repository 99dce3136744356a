package rules

// hostPID denies the node's process namespace: from there a pod sees its neighbors' processes, with their variables
// and file systems, and may signal those of its own user.
var hostPID = Rule{Reason: "hostPID in a slice", Find: func(s Subject) []Part {
	if !s.Pod.Spec.HostPID {
		return nil
	}
	return []Part{{Field: "spec.hostPID", Text: "spec.hostPID is true, and with it the pod sees and may terminate the processes of its neighbors on the node"}}
}, Instead: "remove it (spec.shareProcessNamespace: true shows the pod's own processes)"}
