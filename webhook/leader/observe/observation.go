package observe

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

// State is how enforcement compares with the plan.
type State string

// The states.
const (
	Pending  State = "pending"  // not scheduled, or no container has started
	Enforced State = "enforced" // as planned
	Degraded State = "degraded" // less than planned; Reasons has why
	Ended    State = "ended"    // the pod has run
)

// States lists the states.
func States() []State { return []State{Pending, Enforced, Degraded, Ended} }

// Observation is the observed enforcement of a pod: the annotation gpuslice.dev/observed. It contains no clock, so that it
// changes only when something did.
type Observation struct {
	State      State       `json:"state"`
	Tier       api.Tier    `json:"tier,omitempty"` // the strongest that applies to every container; "" while pending, or terminated
	Node       string      `json:"node,omitempty"`
	Containers []Container `json:"containers,omitempty"`
	Reasons    []string    `json:"reasons,omitempty"` // a sentence each: the plan, the observation, the remedy
	Better     []string    `json:"better,omitempty"`  // a sentence for containers with more than their plan
	Guard      *Guard      `json:"guard,omitempty"`
	Notices    []Notice    `json:"notices,omitempty"` // the last of each kind; they outlive their Events
	// Terminations are the last, oldest first. The guard reads here which of its messages have arrived.
	Terminations []Termination `json:"terminations,omitempty"`
}

// Termination is one that the guard reported, or that somebody made up.
type Termination struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Container is the enforcement of one container's slice.
type Container struct {
	Name  string     `json:"name"`
	Tiers []api.Tier `json:"tiers"`
	// Ended is how its last run failed.
	Ended string `json:"ended,omitempty"`
}

// Guard is the state of the guard's container.
type Guard struct {
	Restarts int32  `json:"restarts,omitempty"`
	Ended    string `json:"ended,omitempty"` // how its last run terminated
}

// Bounds on annotations that are written, and that are read: anybody may have written them.
const (
	maxObservation = 16 << 10
	maxReasons     = 8
	maxNotices     = 6
	// maxTerminations bounds the Events of a pod, too: whoever may write the guard's messages can write many.
	maxTerminations = 10
	maxSentence     = 900 // an Event takes 1024 bytes
	maxQuote        = 400 // of a text from elsewhere
)

// Encode returns the annotation's text: the same text for the same observation.
func (o Observation) Encode() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic("encode observation: " + err.Error()) // every field is plain data
	}
	return string(b)
}

// DecodeObservation reads an annotation. It returns an error for one that is too long or malformed.
func DecodeObservation(text string) (Observation, error) {
	if len(text) > maxObservation {
		return Observation{}, fmt.Errorf("read observation: longer than %d bytes", maxObservation)
	}
	return decodeObservation(text)
}

func decodeObservation(text string) (Observation, error) {
	var o Observation
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return Observation{}, fmt.Errorf("read observation: %w", err)
	}
	o.Notices = o.Notices[:min(len(o.Notices), maxNotices)]
	o.Terminations = o.Terminations[:min(len(o.Terminations), maxTerminations)]
	return o, nil
}

// restarts returns the number of the guard's restarts.
func (o Observation) restarts() int32 {
	if o.Guard == nil {
		return 0
	}
	return o.Guard.Restarts
}
