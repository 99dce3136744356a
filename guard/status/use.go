package status

import (
	"context"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/idle"
	"github.com/gpuslice/gpuslice/guard/ticks"
)

// UseWatch reads the activity of the devices. It is safe for concurrent use.
type UseWatch struct {
	Recorder   *Recorder
	Activities func(context.Context) []guard.Activity // since the last call, of the devices that report it
	Notify     func(idle.Notice)

	reading sync.Mutex // one call of the driver gets the activity
}

// Run reads until ctx is done.
func (w *UseWatch) Run(ctx context.Context) {
	for range ticks.After(ctx, idle.Period) {
		w.read(ctx)
	}
}

// read reads the activity since the last reading, and reports idle slices.
func (w *UseWatch) read(ctx context.Context) {
	w.reading.Lock()
	notices := w.Recorder.Use(time.Now(), w.Activities(ctx))
	w.reading.Unlock()
	for _, n := range notices {
		w.Notify(n)
	}
}

// Idle returns the containers of a pod whose processes are to be terminated. It
// implements node.Agent.Idle.
func (w *UseWatch) Idle(ctx context.Context, uid string, again bool) []guard.Idle {
	if again {
		w.read(ctx)
	}
	return w.Recorder.Due(uid)
}
