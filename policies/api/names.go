package api

// Labels that a pod's author writes. Their values are quoted strings.
const (
	Domain = "gpuslice.dev"

	LabelMemory      = Domain + "/memory"       // slice: memory of each GPU container, per GPU: "8Gi"
	LabelMemoryLimit = Domain + "/memory-limit" // burst: the most it may use while the device is not full: "12Gi"
	LabelFraction    = Domain + "/fraction"     // slice as a share of the usable device: "0.25", "25pct"
	LabelClass       = Domain + "/class"        // a class of the namespace's policy, or "replica"
	LabelCompute     = Domain + "/compute"      // percent of the multiprocessors: "25"
	LabelShare       = Domain + "/share"        // "enabled": the policy's default slice; "disabled": leaves unchanged
	LabelStrategy    = Domain + "/strategy"     // one of the strategies that policy allows
	LabelFramework   = Domain + "/framework"    // the framework inside: "pytorch-2.4"
	LabelContainer   = Domain + "/container"    // which container gets the slice when none requests a GPU
)

// LabelTier is gpuslice's own label on a pod with a slice: the planned tier, for kubectl get pods -L.
const LabelTier = Domain + "/tier"

// Annotations. Containers is the author's, and so is Report, which makes a question of a pod: see denyReportRequest. The others
// are written by gpuslice alone.
const (
	AnnotationReport     = Domain + "/report"     // report that a dry-run create returns: "quota", "policy"
	AnnotationContainers = Domain + "/containers" // container -> memory, fraction, class, compute, processes (YAML or JSON)
	AnnotationPromise    = Domain + "/promise"    // the Promise, JSON
	AnnotationPlanned    = Domain + "/planned"    // the enforcement planned at admission, JSON for people and tools
	AnnotationObserved   = Domain + "/observed"   // the enforcement seen on the node, JSON
	AnnotationSummary    = Domain + "/summary"    // the slice and its enforcement, a line for people
)

// Labels and annotations on namespaces that their selectors read: cluster admins write them.
const (
	LabelEnforce          = Domain + "/enforce" // "strict": the API server itself keeps slices as they were given
	LabelBypass           = Domain + "/bypass"  // "true": nothing is denied
	AnnotationBypassUntil = Domain + "/bypass-until"
	// AnnotationClosedClasses has the device classes of which nobody claims devices in the namespace: gpuslice writes it,
	// and the API server reads it.
	AnnotationClosedClasses = Domain + "/closed-classes"
	// ConditionEnforcing is the type of the condition of nodes by which gpuslice says whether the node's agent enforces.
	ConditionEnforcing = Domain + "/Enforcing"

	// LabelFail says which pods are admitted while no webhook answers.
	LabelFail = Domain + "/fail"

	EnforceStrict     = "strict"
	FailOpen          = "open"            // all
	FailOpenForClaims = "open-for-claims" // those that may use a GPU by a claim alone
)

// Labels on namespaces and ConfigMaps.
const (
	LabelPolicy      = Domain + "/policy" // "true" on the ConfigMaps that hold a policy
	PolicyKey        = "policy.yaml"      // the one key of such a ConfigMap
	TenantPolicyName = "gpuslice-policy"  // the ConfigMap of a tenant's own preferences
	SystemNamespace  = "gpuslice-system"  // where the authority's policies live, unless settings say otherwise

	ClassReplica  = "replica" // the class that means: whatever one replica of the pool holds
	ShareEnabled  = "enabled"
	ShareDisabled = "disabled"
	ResourceGPU   = "nvidia.com/gpu"
)
