package request

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/api"
)

func Immutable(what, was, is string) api.Violation {
	return api.Violation{Rule: api.RuleImmutable, Reason: "the slice of a live pod cannot change", Detail: fmt.Sprintf(
		"%s was %s and would be %s; delete the pod and create it again with the new value", what, was, is)}
}
