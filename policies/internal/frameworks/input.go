package frameworks

import corev1 "k8s.io/api/core/v1"

// View is the memory of its device as a process in the container sees it. The right formula follows from it.
type View string

const (
	// ViewWhole is time-slicing: total and free are the device's own.
	ViewWhole View = "whole"
	// ViewLimitedFree is a pinned limit of MPS: total is the device's own, free ends at the slice.
	ViewLimitedFree View = "limited-free"
	// ViewSliced is MIG or an interposer: total and free are the slice.
	ViewSliced View = "sliced"
	// ViewUnknown is a pool where the driver's limit may hold: the total may be the device's or the limit.
	ViewUnknown View = "unknown"
)

// None is the value of the framework label that requests no profile at all.
const None = "none"

// Input is all that a profile's rules may depend on. Byte counts are per GPU.
type Input struct {
	Container      *corev1.Container // image, command, args, env, envFrom; never changed
	Pod            *corev1.Pod       // annotations and security context; never changed
	Framework      string            // "pytorch-2.4", "jax", None; "" when nobody said
	SliceBytes     int64             // the container's slice
	LimitBytes     int64             // its burst limit; caps use it; below SliceBytes it counts as SliceBytes
	TotalBytes     int64             // device memory; 0 when not known
	AllowanceBytes int64             // memory of one process outside the framework's allocator
	Processes      int               // processes of the container that share one GPU; below 1 counts as 1
	GPUs           int               // GPUs of the container
	View           View              // "" counts as ViewUnknown
	DeviceAlone    bool              // the device has one replica: free at start is the total
	NoShim         string            // why the pod cannot bring the shim; "" where it can
	Switches       map[string]Switch // by profile name
}
