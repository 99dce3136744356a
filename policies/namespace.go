package policies

// Namespace is what a decision may know of the pod's namespace.
type Namespace struct {
	Name   string
	Labels map[string]string
}
