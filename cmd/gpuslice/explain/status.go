package explain

import (
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
)

// status is the state of one object of a cluster: the document of -o json with a name.
type status struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Object     subject `json:"object"`
	State      state   `json:"state"`
	Node       string  `json:"node,omitempty"`

	Requested *api.Request         `json:"requested"` // as the pod was written; null: nothing is recorded
	Given     *grant               `json:"given"`     // null: nothing
	Claimed   []string             `json:"claimed,omitempty"`
	Observed  *observe.Observation `json:"observed"` // null: nothing is observed yet

	Reasons []string `json:"reasons"` // why it is pending, was denied, or ended, a sentence each
	Nodes   []node   `json:"nodes"`   // while it is pending: the nodes with its resource
	Events  []event  `json:"events"`  // the relevant ones, the oldest first
	Pods    []podRow `json:"pods"`    // of a workload
	Notes   []string `json:"notes"`   // failed reads, and the next steps

	holding quota.Holding // its charge with its claims
	denied  bool          // a workload's pods, by gpuslice
}

// subject names the object.
type subject struct {
	Kind      string `json:"kind"` // "pod", "deployment"
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (t subject) String() string { return t.Kind + " " + t.Namespace + "/" + t.Name }

// state is how far a pod has come.
type state string

const (
	missing    state = "missing" // there is none of the name: it was denied, or is gone
	pending    state = "pending" // no node, or nothing runs yet
	running    state = "running"
	terminated state = "terminated"
)

// grant is the slice of a pod.
type grant struct {
	Policy     string              `json:"policy"`
	Strategy   api.StrategyName    `json:"strategy"`
	Pools      []string            `json:"pools"`
	Containers []promise.Container `json:"containers"`
	Charge     quota.Charge        `json:"charge"`
	Planned    promise.Planned     `json:"planned"`
	Guard      bool                `json:"guard"`
}

// node is a node that offers the resource which a pending pod requests.
type node struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Offered  int64  `json:"offered"`
	Free     int64  `json:"free"`             // -1: unknown, since other pods may not be read
	Reason   string `json:"reason,omitempty"` // why the pod cannot run there, whatever is free
}

// event is an Event about the object.
type event struct {
	At     time.Time `json:"at"`
	Object string    `json:"object"` // "pod/train"
	From   string    `json:"from"`
	Reason string    `json:"reason"`
	Text   string    `json:"text"`
	Count  int32     `json:"count"`
	Ours   bool      `json:"ours"` // recorded by gpuslice, or by its guard through the kubelet
}

// podRow is one pod of a workload.
type podRow struct {
	Name        string `json:"name"`
	State       state  `json:"state"`
	Slice       string `json:"slice"`
	Enforcement string `json:"enforcement"` // observed, else planned
}
