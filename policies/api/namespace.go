package api

// Namespace holds the facts about the pod's namespace that decisions use.
type Namespace struct {
	Name   string
	Labels map[string]string
}
