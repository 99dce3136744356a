package life

import (
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/observe"
)

// Life is what is known of one object.
type Life struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	State     State  `json:"state"`
	Node      string `json:"node,omitempty"`

	Asked    *api.Request         `json:"asked"`    // as the pod said it before it was rewritten; null: nothing is recorded
	Given    *Given               `json:"given"`    // null: nothing
	Observed *observe.Observation `json:"observed"` // null: nobody has said yet

	Why   []string `json:"why"`   // why it waits, was refused, or ended, a sentence each
	Nodes []Node   `json:"nodes"` // while it waits: the nodes that offer what it was given
	Told  []Event  `json:"told"`  // Events that matter, the oldest first
	Pods  []Short  `json:"pods"`  // of a workload
	Notes []string `json:"notes"` // what could not be seen, and what to do next

	refused bool
}

// Refused says that a workload's pods are refused by gpuslice.
func (l Life) Refused() bool { return l.refused }

// State is how far a pod has come.
type State string

// The states.
const (
	Missing State = "missing" // there is none of the name: it was refused, or is gone
	Waiting State = "waiting" // no node, or nothing runs yet
	Running State = "running"
	Ended   State = "ended"
)

// Given is what a pod was given.
type Given struct {
	Policy     string              `json:"policy"`
	Strategy   api.StrategyName    `json:"strategy"`
	Pools      []string            `json:"pools"`
	Containers []promise.Container `json:"containers"`
	Charge     quota.Charge        `json:"charge"`
	Planned    promise.Planned     `json:"planned"`
	Guard      bool                `json:"guard"`
}

// Node is a node that offers the resource which a waiting pod asks for.
type Node struct {
	Name     string `json:"name"`
	Resource string `json:"resource"`
	Offered  int64  `json:"offered"`
	Free     int64  `json:"free"`          // -1: pods of others may not be seen
	But      string `json:"but,omitempty"` // why the pod cannot go there, whatever is free
}

// Event is something that was said about the object.
type Event struct {
	At     time.Time `json:"at"`
	Object string    `json:"object"` // "pod/train"
	From   string    `json:"from"`
	Reason string    `json:"reason"`
	Text   string    `json:"text"`
	Count  int32     `json:"count"`
	Ours   bool      `json:"ours"` // gpuslice said it, or its guard through the kubelet
}

// Short is one pod of a workload in a line.
type Short struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Slice string `json:"slice"`
	Holds string `json:"holds"` // what enforcement is observed, else planned
}
