package source

import "github.com/gpuslice/gpuslice/webhook/leader/peaks"

// Recorded returns what gpuslice's leader recorded. Where owners of several kinds have one name, their kinds are part of it.
func Recorded(recorded *peaks.Record) *Records {
	r := NewRecords()
	kinds := map[Key]map[string]bool{}
	keyOf := func(namespace, name, container string) Key {
		if container == name {
			container = ""
		}
		return Key{namespace, name, container}
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
		r.byKey[key] = &Record{Key: key, Owner: Owner{of.Kind, of.Name}, Memory: w.Memory, Slice: w.Slice, Device: w.Device, Pods: w.Pods, Events: w.Events, free: -1}
	}
	return r
}
