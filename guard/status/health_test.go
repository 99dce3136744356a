package status

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpuslice/gpuslice/guard/node"
)

func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		synced := false
		h := Health{New(func(string) (node.Pod, bool) { return node.Pod{}, false }), func() bool { return synced }, time.Now()}
		expect := func(at string, alive bool, ready string) {
			t.Helper()
			if err := h.Alive(); (err == nil) != alive {
				t.Errorf("%s: alive: %v", at, err)
			}
			if err := h.Ready(); ready == "" && err != nil || ready != "" && (err == nil || err.Error() != ready) {
				t.Errorf("%s: ready: %v, want %q", at, err, ready)
			}
		}
		expect("first", true, "the pods of the node are not known yet")
		synced = true
		expect("with the pods", true, "the devices were not sampled yet")
		h.Recorder.Sample(node.Sample{Taken: time.Now(), Fault: "no driver"})
		expect("without a driver", true, "the devices cannot be read")
		h.Recorder.Sample(node.Sample{Taken: time.Now()})
		expect("with a sample", true, "")
		time.Sleep(stuckAfter + time.Second)
		expect("without one for long", false, "no device was sampled for 1m1s")
		h.Recorder.Sample(node.Sample{Taken: time.Now()})
		expect("with another", true, "")
	})
}
