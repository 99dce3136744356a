package ledger

import (
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// Budget is a set of namespaces whose pods are counted together.
type Budget struct {
	Key        string   // policies.BudgetKey
	Namespaces []string // all that share it
}

// Request requests a reservation for one pod that is being created.
type Request struct {
	Budget Budget
	Quota  quota.Quota // the limits that apply to the pod

	PodUID       string
	Name         string // as it will be stored
	NamespaceUID string // empty: unknown
	Holding      quota.Holding

	DryRun   bool      // answer without writing
	Deadline time.Time // of the answer; zero: DefaultTimeout from now on
}

// DefaultTimeout is the timeout of a request without a deadline: a webhook's ten seconds, less the way back of the answer.
const DefaultTimeout = 8 * time.Second

// Decision is the outcome of a Request.
type Decision string

// The decisions.
const (
	Admitted Decision = "admitted" // a reservation is written
	Exceeded Decision = "exceeded" // the quota is exceeded: see the guarantees of the package
	Busy     Decision = "busy"     // no decision in time; try again
)

// Answer answers one Request.
type Answer struct {
	Decision   Decision
	Excess     []quota.Excess // of Exceeded
	Pods       []Pod          // of Exceeded: those of the request's namespace that were listed
	Reserved   []Reservation  // of Exceeded: those of that namespace whose pods were not
	RetryAfter time.Duration  // of Busy
	Reason     string         // of Busy, for people
}

func busyAnswer(after time.Duration, reason string) Answer {
	return Answer{Decision: Busy, RetryAfter: after, Reason: reason}
}

// Report is the result of a reconcile, for metrics and Events.
type Report struct {
	Budget Budget
	State  State // as reconciled
	// Unmanaged are pods that were created without a review. They count.
	Unmanaged []Pod
}
