package api

import (
	"slices"
	"strings"
)

// Labels that a pod's author writes. Their values are quoted strings.
const (
	Domain = "gpuslice.dev"

	LabelMemory      = Domain + "/memory"       // slice: memory of each GPU container, per GPU: "8Gi"
	LabelMemoryLimit = Domain + "/memory-limit" // burst: what it may reach while the device is not full: "12Gi"
	LabelFraction    = Domain + "/fraction"     // slice as a share of the usable device: "0.25", "25pct"
	LabelClass       = Domain + "/class"        // a class of the namespace's policy, or "replica"
	LabelCompute     = Domain + "/compute"      // percent of the multiprocessors: "25"
	LabelShare       = Domain + "/share"        // "enabled": the policy's default slice; "disabled": leaves unchanged
	LabelStrategy    = Domain + "/strategy"     // one of the strategies that policy allows
	LabelFramework   = Domain + "/framework"    // what runs inside: "pytorch-2.4"
	LabelContainer   = Domain + "/container"    // which container gets the slice when none asks for a GPU
)

// Annotations. Containers is the author's, and so is Report, which makes a question of a pod: see isReportRequest. The others
// are written by gpuslice alone.
const (
	AnnotationReport     = Domain + "/report"     // what a dry-run create of the pod is answered with: "quota"
	AnnotationContainers = Domain + "/containers" // container -> memory, fraction, class, compute, processes (YAML or JSON)
	AnnotationPromise    = Domain + "/promise"    // the Promise, JSON
	AnnotationPlanned    = Domain + "/planned"    // the enforcement planned at admission, JSON for people and tools
	AnnotationObserved   = Domain + "/observed"   // the enforcement seen on the node, JSON
)

// Labels and annotations on namespaces that their selectors read: cluster admins write them.
const (
	LabelEnforce           = Domain + "/enforce" // "strict": the API server itself keeps slices as they were given
	LabelFail              = Domain + "/fail"    // "open": pods that cannot be validated pass
	LabelBypass            = Domain + "/bypass"  // there at all: nothing is denied
	AnnotationBypassUntil  = Domain + "/bypass-until"
	AnnotationBypassReason = Domain + "/bypass-reason"
	AnnotationBypassBy     = Domain + "/bypass-by"

	ReportQuota   = "quota" // how the namespace's quota stands
	EnforceStrict = "strict"
	FailOpen      = "open"
)

// Labels on namespaces and ConfigMaps.
const (
	LabelPolicy       = Domain + "/policy"       // "true" on the ConfigMaps that hold a policy
	PolicyKey         = "policy.yaml"            // the one key of such a ConfigMap
	TenantPolicyName  = "gpuslice-policy"        // the ConfigMap of a tenant's own preferences
	SystemNamespace   = "gpuslice-system"        // where the authority's policies live, unless settings say otherwise
	LabelTrustDomain  = Domain + "/trust-domain" // on nodes: the tenants that may share their devices; it keeps pools apart
	LabelPodSecurity  = "pod-security.kubernetes.io/enforce"
	volumePrefix      = "gpuslice-" // volumes of ours
	ContainerPrefix   = "gpuslice-" // containers of ours
	ClassReplica      = "replica"   // the class that means: whatever one replica of the pool holds
	ShareEnabled      = "enabled"
	ShareDisabled     = "disabled"
	ResourceGPU       = "nvidia.com/gpu"
	ResourceGPUShared = "nvidia.com/gpu.shared"
	NVIDIAPrefix      = "nvidia.com/" // of all GPU resources
	ResourceMIGPrefix = NVIDIAPrefix + "mig-"
	MaxGPUs           = 64
)

// Variables that gpuslice writes by name. A value that a pod brings along under these names is not the author's to
// choose in a sliced pod: it is replaced, and the author gets a warning.
const (
	VarMPSPipe            = "CUDA_MPS_PIPE_DIRECTORY"
	VarMPSLog             = "CUDA_MPS_LOG_DIRECTORY"
	VarMPSPinned          = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
	VarMPSThreads         = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	VarDriverLimit        = "NVIDIA_GPU_MEMORY_LIMIT"   // hard, integer MiB, container toolkit 1.20.1
	VarDriverRequest      = "NVIDIA_GPU_MEMORY_REQUEST" // soft, integer MiB
	VarMemoryBytes        = "GPUSLICE_MEMORY_BYTES"     // the slice per GPU, bytes, for anyone's own code
	VarVisibleDevices     = "NVIDIA_VISIBLE_DEVICES"
	VarDriverCapabilities = "NVIDIA_DRIVER_CAPABILITIES"
	VarFraction           = "GPUSLICE_FRACTION" // the slice as a share of the device's total
)

// OwnPrefixes are the beginnings of variable names that belong to gpuslice in a sliced pod.
func OwnPrefixes() []string {
	return []string{"GPUSLICE_", "CUDA_MPS_", "NVIDIA_GPU_MEMORY_"}
}

// IsOwnVariable reports whether a variable of this name belongs to gpuslice in a sliced pod.
func IsOwnVariable(name string) bool {
	return slices.ContainsFunc(OwnPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) })
}

func IsOurContainer(name string) bool { return strings.HasPrefix(name, ContainerPrefix) }
func IsOurVolume(name string) bool    { return strings.HasPrefix(name, volumePrefix) }
