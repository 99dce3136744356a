package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
)

func TestBystanders(t *testing.T) {
	known := map[string]Pod{"bare": {UID: "bare", Name: "bare"}}
	b := &Bystanders{Known: func(uid string) (Pod, bool) { p, found := known[uid]; return p, found }}
	sample := func(uid string, gibs int64) Sample {
		p := Process{Process: guard.Process{PID: 57, Command: "python", UsedBytes: gibs << 30}, Member: cgroup.Member{PodUID: uid}}
		return Sample{Devices: []Device{{Device: guard.Device{ID: "gpu0"}, Processes: []Process{p, p}}}}
	}
	const says = "python (pid 57) uses 30Gi on gpu0, and its pod was given no GPU: nothing limits it"
	for _, c := range []struct {
		name   string
		sample Sample
		want   []string
	}{
		{"one with a device", sample("other", 30), nil},
		{"one of no pod", sample("", 30), nil},
		{"one that holds nothing yet", sample("bare", 0), nil},
		{"one without", sample("bare", 30), []string{says}},
		{"the same again", sample("bare", 30), nil},
	} {
		var got []string
		b.Find(c.sample, func(p Pod, message string) {
			if got = append(got, message); p.Name != "bare" {
				t.Errorf("%s: reported of %q", c.name, p.Name)
			}
		})
		if !cmp.Equal(c.want, got) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	known = map[string]Pod{"next": {UID: "next"}}
	b.Find(sample("next", 30), func(Pod, string) {})
	if want := map[string]bool{"next": true}; !cmp.Equal(want, b.reported) {
		t.Errorf("kept %v", b.reported)
	}
}
