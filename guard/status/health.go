package status

import (
	"errors"
	"fmt"
	"time"
)

// stuckAfter is how long an agent may be without a sample before it should be
// started again: the driver answers within seconds or not at all.
const stuckAfter = time.Minute

// Health is whether an agent samples, and so enforces.
type Health struct {
	Recorder *Recorder
	Synced   func() bool // the pods of the node are known
	Began    time.Time
}

// Alive returns why the agent should be started again, or nil.
func (h Health) Alive() error {
	at, _ := h.Recorder.LastSample()
	if at.IsZero() {
		at = h.Began
	}
	if since := time.Since(at); since > stuckAfter {
		return fmt.Errorf("no device was sampled for %s", since.Round(time.Second))
	}
	return nil
}

// Ready returns why the agent does not enforce, or nil.
func (h Health) Ready() error {
	at, readable := h.Recorder.LastSample()
	switch {
	case !h.Synced():
		return errors.New("the pods of the node are not known yet")
	case at.IsZero():
		return errors.New("the devices were not sampled yet")
	case !readable:
		return errors.New("the devices cannot be read")
	}
	return h.Alive()
}
