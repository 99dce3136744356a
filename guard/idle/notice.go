package idle

import (
	"fmt"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// Notice is about a slice in which nothing has run for as long as its policy
// allows without one.
type Notice struct {
	Pod       node.Pod
	Container limits.Container
	For       time.Duration
}

// Message returns the text for the pod's owner.
func (n Notice) Message() string {
	held := guard.FormatBytes(n.Container.SliceBytes)
	if n.Container.GPUs > 1 {
		held += fmt.Sprintf(" on each of %d GPUs", n.Container.GPUs)
	}
	text := fmt.Sprintf("nothing of %s ran on a GPU for %s, and its slice holds %s: delete the pod if nobody needs it",
		n.Container.Name, guard.FormatPeriod(n.For), held)
	if l := n.Pod.Limits; l.IdleTerminate > 0 && !l.DryRun {
		text += fmt.Sprintf("; what it holds of a GPU is terminated after %s of this (policy idle.terminate)", guard.FormatPeriod(l.IdleTerminate))
	}
	return text
}
