package history

import (
	"cmp"
	"context"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader/peaks"
)

// Workloads are the inputs of estimates from each record, in their order, and the fleet that estimates learn from: the workloads whose
// samples are their own. device is the memory of a GPU where the samples do not have it; 0: unknown. Coverage is between 0 and 1.
func Workloads(all []*Record, device api.MiB, coverage, hours float64) ([]*sizing.Workload, *sizing.Fleet) {
	var workloads, own []*sizing.Workload
	for _, r := range all {
		r.Device = cmp.Or(r.Device, device)
		if r.Memory.Peak() > float64(r.Device) {
			r.Device = 0 // of another GPU
		}
		w := &sizing.Workload{Group: strings.TrimPrefix(r.Key.Cluster+"/"+r.Key.Namespace, "/"), Memory: &r.Memory, Slice: float64(r.Slice),
			Device: float64(r.Device), Events: r.Events, Engine: r.EngineUse > 0}
		if workloads = append(workloads, w); !r.Shared {
			own = append(own, w)
		}
	}
	return workloads, sizing.NewFleet(own, coverage, hours)
}

// ReadRecord reads what gpuslice's leader recorded, from the day of a time until before another time.
func ReadRecord(ctx context.Context, client kubernetes.Interface, system string, from, until time.Time) (*peaks.Record, error) {
	return peaks.Read(ctx, client, system, from, until, func() peaks.Samples { return new(sizing.History) })
}

// Recorded returns a record that ReadRecord read. Where owners of several kinds have one name, their kinds are part of it.
func Recorded(recorded *peaks.Record) *Records {
	r := NewRecords()
	kinds := map[Key]map[string]bool{}
	keyOf := func(namespace, name, container string) Key {
		if container == name {
			container = ""
		}
		return Key{Namespace: namespace, Workload: name, Container: container}
	}
	for of := range recorded.Workloads {
		key := keyOf(of.Namespace, of.Name, of.Container)
		if kinds[key] == nil {
			kinds[key] = map[string]bool{}
		}
		kinds[key][of.Kind] = true
	}
	for of, w := range recorded.Workloads {
		key := keyOf(of.Namespace, of.Name, of.Container)
		if len(kinds[key]) > 1 {
			key.Workload = of.Kind + "/" + of.Name
		}
		r.byKey[key] = &Record{Key: key, Owner: Owner{of.Kind, of.Name}, Memory: *w.Memory.(*sizing.History), Events: sizing.Events{Terminated: w.Terminated},
			Slice: w.Slice, Device: w.Device, Pods: w.Pods, free: -1}
	}
	return r
}
