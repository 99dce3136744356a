package server

// Paths and ports of the server. The manifests name the same ones, and a test of package deploy compares them.
const (
	PathMutatePods       = "/mutate-pods"
	PathMutateTemplates  = "/mutate-templates"
	PathValidatePods     = "/validate-pods"
	PathValidatePolicies = "/validate-policies"
	PathHealth           = "/healthz" // the process serves
	PathReady            = "/readyz"  // it may be sent reviews
	PathMetrics          = "/metrics"
	PathState            = "/state" // inputs of decisions: policies, pools, nodes

	Port        = 9443 // reviews, HTTPS
	MetricsPort = 8080 // health, readiness and metrics, plain HTTP
)
