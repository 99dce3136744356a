package policies

// hostIPC refuses the node's IPC namespace: the shared memory of MPS clients is there.
func hostIPC() TamperRule {
	return TamperRule{Reason: "hostIPC in a slice", Find: func(in *Input) []string {
		if !in.Pod.Spec.HostIPC {
			return nil
		}
		return []string{"spec.hostIPC is true, and with it the pod reaches the shared memory of its neighbours on the node"}
	}, Instead: "remove it (an emptyDir with medium: Memory on /dev/shm is shared memory of the pod's own)"}
}
