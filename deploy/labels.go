package deploy

import "github.com/gpuslice/gpuslice/policies/api"

// LabelFail is the namespace label by which the manifests treat pods that cannot be validated. FailOpen is its value
// for "they pass".
const (
	LabelFail = api.Domain + "/fail"
	FailOpen  = "open"
)
