package config

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/strategies"
	"github.com/gpuslice/gpuslice/policies/quota"
)

// APIVersion is the version of the policy document that this build reads.
const APIVersion = "gpuslice.dev/v1"

// Policy is the document that governs namespaces, as people write it (policy.yaml in a ConfigMap). Parse is its
// only door: it fills in defaults and reports every problem. A Policy is read-only afterwards and shared.
type Policy struct {
	// The version of the document, required.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind,omitempty"` // "Policy" or empty

	// Name is the document's source for people and logs ("gpuslice-system/team-a"); it is not part of it.
	Name string `json:"-"`

	// The namespaces that the policy governs, by names or by a selector over their labels. Without both, it is the cluster's default. Names
	// win over selectors, selectors over the default.
	Namespaces *NamespaceMatch `json:"namespaces,omitempty"`
	// Pods that get a slice: off, none; opt-in (default), those that request one; transparent, also each pod with `nvidia.com/gpu: 1`.
	Mode modes.Mode `json:"mode,omitempty"`
	// Effect of the policy: audit, report only; warn, mutate pods and deny none; enforce (default).
	EnforcementMode api.EnforcementMode `json:"enforcementMode,omitempty"`
	// Allowed strategies, in order of preference. Default: `[mig, mps, time-slicing, exclusive]`. The strategy claim has to be listed.
	Strategies []api.StrategyName `json:"strategies,omitempty"`
	// The slice of a pod that requests none, by memory, fraction or class.
	DefaultSlice *SliceSpec `json:"defaultSlice,omitempty"`
	// Slices by name, which pods request with the label `gpuslice.dev/class`. The class replica is built in: whatever one replica has.
	Classes map[string]SliceSpec `json:"classes,omitempty"`
	// The largest sizes of slices in a container and in a pod, also of defaultSlice, and bounds of bursts and small slices.
	Limits sizeLimits `json:"limits,omitzero"`
	// What the pods of a namespace may have together, also by a pool's whole name (`pools: {NAME: {slices: 4}}`, which keeps each pod on its
	// pool) and by class. 0 allows none. A lower limit terminates nothing.
	Quota       QuotaSpec  `json:"quota,omitzero"`
	TenantQuota *QuotaSpec `json:"-"` // a tenant's own additions, for its namespace
	// Forms of requests that are accepted beside gpuslice's labels: fractional-quantity (`nvidia.com/gpu: "0.25"`), shared-name (a resource
	// of shares, such as `nvidia.com/gpu.shared: 1`), and those of other systems.
	Accept []string `json:"accept,omitempty"`
	// Units of memory of accepted systems whose device plugins are configured with another than their default: `{aliyun: 1Mi}` for gpushare with
	// `--memory-unit=MiB`, `{volcano: 1Gi}` for Volcano with `--gpu-memory-factor=1024`.
	MemoryUnits map[string]quantity.MiB `json:"memoryUnits,omitempty"`
	// Whether a pod may opt out of transparent mode with `gpuslice.dev/share: disabled`.
	OptOut bool `json:"optOut,omitempty"`
	// The weakest tier of a slice. Default: none.
	MinimumEnforcement minimumSpec `json:"minimumEnforcement,omitzero"`
	// Settings of framework profiles.
	Frameworks map[string]frameworks.Switch `json:"frameworks,omitempty"`
	// The framework of containers whose image and labels name none.
	DefaultFramework string `json:"defaultFramework,omitempty"`
	// Memory of a process outside its framework's allocator. Default: 512Mi, 1Gi with several GPUs.
	ContextAllowance *quantity.MiB `json:"contextAllowance,omitempty"`
	// Variables for every slice. `{{memoryBytes}}`, `{{memoryMiB}}` and `{{fraction}}` are replaced.
	Env []envSpec `json:"env,omitempty"`
	// Pools beside those that are read from nodes; only in the cluster's default policy. See deploy/howto/device-plugin.md.
	Pools PoolsSpec `json:"pools,omitzero"`
	// Directories and users of your own MPS daemons. See deploy/howto/mps.md.
	MPS strategies.MPSSpec `json:"mps,omitzero"`
	// The choice of MIG instances.
	MIG migSpec `json:"mig,omitzero"`
	// Settings of the guard. See guard/README.md.
	Guard guardSpec `json:"guard,omitzero"`
	// The reaction to a slice whose GPU is not used. Only agents see that, from their own start on, and not under MPS and MIG, where drivers
	// do not report who ran.
	Idle idleSpec `json:"idle,omitzero"`
	// Fields that pods with a slice get if their author set none.
	Pod podSpec `json:"pod,omitzero"`
	// Fractions in workload templates, which Kubernetes rejects: check (default) answers with what to write, rewrite changes them, off does
	// nothing.
	Templates modes.TemplatesMode `json:"templates,omitempty"`
	// Pods that claim GPUs by dynamic resource allocation, but no slice: deny (the default where the policy has a quota or lists the strategy
	// claim), or count (the default elsewhere). Counted claims are whole devices of unknown memory. A quota of memory therefore denies them,
	// and a quota, or the strategy claim, denies them to pods of a PodGroup. See deploy/howto/dra.md.
	Claims modes.ClaimsMode `json:"claims,omitempty"`
	// Device classes of GPUs, beside NVIDIA's and the classes that select NVIDIA's driver or any device.
	DeviceClasses []string `json:"deviceClasses,omitempty"`
}

// Off reports whether nothing is governed: there is no policy, or its mode is off.
func (p *Policy) Off() bool { return p == nil || p.Mode == modes.Off }

// NamespaceMatch selects the namespaces of a policy. Name beats selector beats default.
type NamespaceMatch struct {
	Names    []string              `json:"names,omitempty"`
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// SliceSpec is a slice as policy writes it: one of memory and fraction, the rest optional.
type SliceSpec struct {
	Memory      quantity.MiB      `json:"memory,omitzero"`
	MemoryLimit quantity.MiB      `json:"memoryLimit,omitzero"`
	Fraction    quantity.Fraction `json:"fraction,omitzero"`
	Class       string            `json:"class,omitempty"` // in defaultSlice only
	Compute     int               `json:"compute,omitempty"`
	Processes   int               `json:"processes,omitempty"`
}

// sizeLimits are the largest sizes that policy allows. Zero: no limit.
type sizeLimits struct {
	PerContainer quota.Charge `json:"perContainer,omitzero"`
	PerPod       quota.Charge `json:"perPod,omitzero"`
	// MemoryLimit is the most that a container may reach with a memory limit above its slice. Default: perContainer.memory.
	MemoryLimit quantity.MiB `json:"memoryLimit,omitzero"`
	// MaxLimitRequestRatio is the most that a container's memory limit may be, as a multiple of its slice.
	MaxLimitRequestRatio int `json:"maxLimitRequestRatio,omitempty"`
	// MinMemory is the least slice that a container may request. Default: the context allowance.
	MinMemory quantity.MiB `json:"minMemory,omitzero"`
}

// Allowance is the memory of a process outside its framework's allocator, for a container with so many GPUs.
func (p *Policy) Allowance(gpus int64) quantity.MiB {
	if p.ContextAllowance != nil {
		return *p.ContextAllowance
	}
	return quantity.MiB(frameworks.DefaultAllowance(int(gpus)) >> 20)
}

// envSpec is a variable of policy's own; its value may hold {{memoryBytes}}, {{memoryMiB}} and {{fraction}}.
type envSpec struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PoolsSpec declares pools. Only the cluster's default policy may carry it.
type PoolsSpec struct {
	Declared []PoolSpec  `json:"declared,omitempty"`
	Complete bool        `json:"complete,omitempty"` // there is nothing beyond declared and known pools: deny pods that fit none
	Reserve  ReserveSpec `json:"reserve,omitzero"`
	// How long a pool that lost its nodes is remembered, and used where no other pool fits; 0: not at all. Default: 24h.
	RememberFor *metav1.Duration `json:"rememberFor,omitempty"`
}

// Remembers is how long a pool without a node is remembered.
func (s *PoolsSpec) Remembers() time.Duration {
	if s.RememberFor == nil {
		return defaultRememberFor
	}
	return s.RememberFor.Duration
}

// PoolSpec declares a pool by the labels that its nodes carry (and an autoscaler knows).
type PoolSpec struct {
	Name           string                     `json:"name"`
	Selector       map[string]string          `json:"selector"`
	Resource       string                     `json:"resource"`
	Strategy       api.StrategyName           `json:"strategy"`
	DeviceMemory   quantity.MiB               `json:"deviceMemory,omitzero"`
	Replicas       int                        `json:"replicas,omitempty"`
	Granular       bool                       `json:"granular,omitempty"` // replicas are parts of the one GPU of a node: a slice takes several
	MIGProfile     string                     `json:"migProfile,omitempty"`
	InstanceMemory quantity.MiB               `json:"instanceMemory,omitzero"` // memory of a MIG instance
	MPSProvider    strategies.MPSProviderName `json:"mpsProvider,omitempty"`
	Driver         string                     `json:"driver,omitempty"`       // "580.95.05"
	DriverLimits   bool                       `json:"driverLimits,omitempty"` // driver 615, container toolkit 1.20.1, cgroup v2
	ScalesFromZero bool                       `json:"scalesFromZero,omitempty"`
	Taints         []corev1.Taint             `json:"taints,omitempty"`
	TrustDomain    string                     `json:"trustDomain,omitempty"`
}

// ReserveSpec keeps memory of each shared device free: the larger of percent and memory, or the memory of each claim
// beyond its slice. Defaults: 3 %, 512Mi and 300Mi.
type ReserveSpec struct {
	Percent *int          `json:"percent,omitempty"`
	Memory  *quantity.MiB `json:"memory,omitempty"`
	// if slices are claims, the part of each beside its slice; default: 300Mi, for a CUDA context
	PerClaim *quantity.MiB `json:"perClaim,omitempty"`
}

// BesideClaim returns the memory of a device that a claim takes beyond the slice.
func (r ReserveSpec) BesideClaim() quantity.MiB {
	if r.PerClaim != nil {
		return *r.PerClaim
	}
	return defaultReservePerClaim
}

// Amounts returns the part of a device and the memory to keep free.
func (r ReserveSpec) Amounts() (percent int, memory quantity.MiB) {
	percent, memory = defaultReservePercent, defaultReserveMemory
	if r.Percent != nil {
		percent = *r.Percent
	}
	if r.Memory != nil {
		memory = *r.Memory
	}
	return percent, memory
}

// idleSpec is the reaction to a slice in which nothing runs. Only an agent sees that.
type idleSpec struct {
	// Time without use of the GPU after which an agent writes an Event. Default: half of terminate; without both, never.
	Report metav1.Duration `json:"report,omitzero"`
	// Time without use of the GPU after which an agent terminates the slice's processes on the GPU. Default: never.
	Terminate metav1.Duration `json:"terminate,omitzero"`
}

// Set returns the names of the fields that are set.
func (i idleSpec) Set() (names []string) {
	if i.Report.Duration > 0 {
		names = append(names, "report")
	}
	if i.Terminate.Duration > 0 {
		names = append(names, "terminate")
	}
	return names
}

// guardSpec is the policy on the guard.
type guardSpec struct {
	Enabled *bool `json:"enabled,omitempty"` // default true
	// The program that enforces slices: auto (default), the agent if each node of the pool has one, else the sidecar; sidecar; or agent.
	Mode string `json:"mode,omitempty"`
	// When a container is over: pressure (default), past its memory-limit, or past its slice while the device is nearly full; always, past
	// its slice.
	Act               string          `json:"act,omitempty"`
	DryRun            bool            `json:"dryRun,omitempty"`
	Access            string          `json:"access,omitempty"` // how the guard reaches NVML; default auto
	RuntimeClassName  string          `json:"runtimeClassName,omitempty"`
	Grace             metav1.Duration `json:"grace,omitzero"`             // over the slice for so long; default 2s
	TermGrace         metav1.Duration `json:"termGrace,omitzero"`         // from SIGTERM to SIGKILL; default 5s
	MPSTermination    string          `json:"mpsTermination,omitempty"`   // default observe
	MaxTerminations   int             `json:"maxTerminations,omitempty"`  // before all of the container are terminated; default 3
	TerminationWindow metav1.Duration `json:"terminationWindow,omitzero"` // default 5m
	MetricsPort       int             `json:"metricsPort,omitempty"`      // none by default
	InitImages        []string        `json:"initImages,omitempty"`       // patterns of images whose init has to be PID 1, beside known ones
}

// podSpec is written into each sliced pod unless its author wrote it.
type podSpec struct {
	PriorityClassName string              `json:"priorityClassName,omitempty"`
	SchedulerName     string              `json:"schedulerName,omitempty"`
	RuntimeClassName  string              `json:"runtimeClassName,omitempty"`
	Tolerations       []corev1.Toleration `json:"tolerations,omitempty"`
}

// migSpec is how MIG instances are chosen.
type migSpec struct {
	// What 10Gi gets where an instance 1g.10gb has 9.5Gi usable: up (default), the next profile, with a warning; nearest, that instance.
	Rounding modes.MIGRounding `json:"rounding,omitempty"`
}

// Defaults of the document, in one place so that the reference and the parser agree.
const (
	defaultMode             = modes.OptIn
	defaultEnforcement      = api.EnforceFull
	defaultTemplates        = modes.TemplatesCheck
	defaultMIGRounding      = modes.MIGUp
	defaultReservePercent   = 3
	defaultReserveMemory    = quantity.MiB(512)
	defaultReservePerClaim  = quantity.MiB(300)
	defaultRememberFor      = 24 * time.Hour
	defaultAllowanceSeveral = quantity.MiB(1024) // context of one process with several GPUs, NCCL's buffers included
	defaultPipeDirectory    = "/run/nvidia-mps"
	defaultLogDirectory     = "/var/log/nvidia-mps"
	defaultGuardGrace       = 2 * time.Second
)

// Allows reports whether policy allows a strategy.
func (p *Policy) Allows(name api.StrategyName) bool { return slices.Contains(p.Strategies, name) }
