package ledger

import (
	"time"

	"github.com/gpuslice/gpuslice/policies"
)

// Budget says which pods are counted together.
type Budget struct {
	Key        string   // policies.BudgetKey
	Namespaces []string // all that share it
}

// Request asks for room for one pod that is being created.
type Request struct {
	Budget Budget
	Quota  policies.Quota // what the pod is held against

	PodUID       string
	Name         string // as it will be stored
	NamespaceUID string // empty: not known
	Holding      policies.Holding

	DryRun   bool      // answer, and write nothing
	Deadline time.Time // nobody waits for an answer after it; zero: DefaultPatience from now on
}

// DefaultPatience is how long a request waits that names no deadline: what is left of a webhook's ten seconds when the
// answer has to travel back.
const DefaultTimeout = 8 * time.Second

// Verdict is what became of a Request.
type Decision string

// The verdicts.
const (
	Admitted Decision = "admitted" // the room is reserved
	Exceeded Decision = "exceeded" // there is no room: true at an instant since the request was made
	Busy     Decision = "busy"     // it cannot be told in time; to be tried again
)

// Answer answers one Request.
type Answer struct {
	Decision   Decision
	Excess     []policies.Excess // of Exceeded
	RetryAfter time.Duration     // of Busy
	Reason     string            // of Busy, for people
}

func busyAnswer(after time.Duration, why string) Answer {
	return Answer{Decision: Busy, RetryAfter: after, Reason: why}
}

// Report is what a reconcile found: for metrics and Events.
type Report struct {
	Budget Budget
	State  State // as reconciled
	// Unpromised are pods that were created while nobody looked. They count.
	Unmanaged []Pod
}
