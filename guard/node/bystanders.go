package node

import (
	"fmt"
	"maps"

	"github.com/gpuslice/gpuslice/guard"
)

// Bystanders are the pods that have no device, and use one all the same: by a
// descriptor that a container with a device passed to them, or by their image's
// variables.
type Bystanders struct {
	// Known returns a pod that has no device; false: it has one, or is gone.
	Known func(uid string) (Pod, bool)

	reported map[string]bool // by UID
}

// Find calls report with the message on each pod of a sample, each pod once.
func (b *Bystanders) Find(s Sample, report func(p Pod, message string)) {
	for _, d := range s.Devices {
		for _, process := range d.Processes {
			uid := process.Member.PodUID
			p, bystander := b.Known(uid)
			// A process without memory takes nothing from anybody.
			if !bystander || b.reported[uid] || process.UsedBytes == 0 {
				continue
			}
			maps.DeleteFunc(b.reported, func(uid string, _ bool) bool { _, there := b.Known(uid); return !there })
			if b.reported == nil {
				b.reported = map[string]bool{}
			}
			b.reported[uid] = true
			report(p, fmt.Sprintf("%s (pid %d) uses %s on %s, and its pod was given no GPU: nothing limits it",
				process.Command, process.PID, guard.FormatBytes(process.UsedBytes), d.ID))
		}
	}
}
