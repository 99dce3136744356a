package report

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// sizes counts the containers of workloads by the verdict on their slices.
type sizes struct {
	Containers    int `json:"containers"` // that have a history
	OverRequested int `json:"overRequested"`
	AtRisk        int `json:"atRisk"`
}

// sizesOf counts those of a namespace; "": of all. nil: none has a history.
func sizesOf(book *advice.Book, namespace string) *sizes {
	var n sizes
	for r := range book.All {
		if namespace != "" && r.Namespace != namespace {
			continue
		}
		n.Containers++
		switch r.Verdict {
		case sizing.OverRequested:
			n.OverRequested++
		case sizing.AtRisk:
			n.AtRisk++
		}
	}
	if n.Containers == 0 {
		return nil
	}
	return &n
}

func (n *sizes) String() string {
	return fmt.Sprintf("of %d containers with a history, %d are over-requested now and %d at risk: see gpuslice recommend --from record", n.Containers, n.OverRequested, n.AtRisk)
}
