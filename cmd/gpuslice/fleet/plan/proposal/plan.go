package proposal

import (
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/policies/api"
)

// Plan is how to divide the devices of a fleet.
type Plan struct {
	Devices    Devices      `json:"devices"`
	Waiting    Waiting      `json:"waiting"`
	Applied    bool         `json:"applied"` // false: with the layout found more pods would wait, so the nodes keep theirs
	Demand     Demand       `json:"demand"`
	Waste      Waste        `json:"waste"`
	Layouts    []Layout     `json:"layouts"`
	Nodes      []Nodes      `json:"nodes"`
	Comparison []Comparison `json:"comparison"`
	Unplaced   []Unplaced   `json:"unplaced"` // pods that no node could take if it were empty
	Notes      []string     `json:"notes"`

	Models map[string]*Model `json:"models"`
	Groups []Group           `json:"groups"`

	packing  *layout.Packing
	families layout.Families

	// The nodes that are there, as they are and with the layouts.
	Now, Next *layout.Assignment `json:"-"`
}

// Devices are numbers of whole GPUs.
type Devices struct {
	Total      int     `json:"total"`      // that are there
	Today      int     `json:"today"`      // that the pods need by today's layout, as if there were enough nodes of each kind
	Planned    int     `json:"planned"`    // by the layout proposed
	LowerBound int     `json:"lowerBound"` // no layout of the same families needs fewer
	Freed      int     `json:"freed"`      // today less planned
	GapRatio   float64 `json:"gapRatio"`   // of planned above the bound
}

// Waiting are numbers of pods that the nodes that are there leave waiting.
type Waiting struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// Demand is the need of the pods.
type Demand struct {
	Pods    int     `json:"pods"`
	Parts   int     `json:"parts"` // pods that need a part of one device
	Devices float64 `json:"devices"`
	Rounded float64 `json:"rounded"` // devices that the plan has beside those, by rounding to parts that there are
}

// Model is how many devices of one model the pods need.
type Model struct {
	Total   int `json:"total"`
	Today   int `json:"today"`
	Planned int `json:"planned"`
}

// Layout is one way to divide devices, and how many devices the pods need divided so. Nodes and NodeDevices are those of the fleet that
// get it.
type Layout struct {
	Strategy    api.StrategyName `json:"strategy"`
	Replicas    int              `json:"replicas,omitempty"`
	Profiles    map[string]int   `json:"profiles,omitempty"` // MIG instances of one device
	Devices     int              `json:"devices"`
	Pods        int              `json:"pods"`
	Nodes       int              `json:"nodes"`
	NodeDevices int              `json:"nodeDevices"`
}

// Nodes are nodes with as many devices of one model that get the same layout.
type Nodes struct {
	Model    string           `json:"model"`
	Strategy api.StrategyName `json:"strategy"`
	Replicas int              `json:"replicas,omitempty"`
	Profiles []map[string]int `json:"profiles,omitempty"` // MIG instances, by device
	Devices  int              `json:"devices"`            // of all the nodes
	Changed  bool             `json:"changed"`            // today's layout is another
	Names    []string         `json:"names"`
}

// Comparison is the need of another layout for the same pods.
type Comparison struct {
	Layout     string `json:"layout"`
	Devices    int    `json:"devices"`
	LowerBound int    `json:"lowerBound"`
	Parts      int    `json:"parts"` // of the devices, those of pods that need parts
}

// Unplaced is a pod that no kind of node could take.
type Unplaced struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
}
