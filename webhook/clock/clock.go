// Package clock knows the time of the API server, by the Date of its answers. Replicas date stored objects by it, since
// their own clocks may differ.
package clock

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// MaxDifference is by how much the clock of a replica that is ready may differ from the API server's. Reservations do not
// depend on it; certificates, tokens and the end of a bypass do.
const MaxDifference = 10 * time.Second

// Clock is the API server's. It is safe for concurrent use.
type Clock struct {
	log logr.Logger
	now func() time.Time

	mu      sync.Mutex
	last    window
	differs bool // as it was last logged
}

// New returns a Clock that knows no time yet, and registers its metric.
func New(registerer prometheus.Registerer, log logr.Logger) (*Clock, error) {
	c := &Clock{log: log, now: time.Now}
	err := registerer.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gpuslice_clock_difference_seconds",
		Help: "How far the replica's clock is ahead of the API server's, or 0 within the precision of its answers."},
		func() float64 { return c.Difference().Seconds() }))
	if err != nil {
		return nil, fmt.Errorf("register the clock's metric: %w", err)
	}
	return c, nil
}

// Bounds returns the earliest and the latest time that the API server's clock may show now. Until it has answered, both are
// the local time.
func (c *Clock) Bounds() (earliest, latest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.last.at.IsZero() {
		return now, now
	}
	w := c.last.after(now)
	return w.earliest, w.latest
}

// Difference returns by how much the local clock is certainly ahead of the API server's; negative: behind.
func (c *Clock) Difference() time.Duration {
	earliest, latest := c.Bounds()
	now := c.now().Round(0) // without the monotonic reading
	switch {
	case now.Before(earliest):
		return now.Sub(earliest)
	case now.After(latest):
		return now.Sub(latest)
	}
	return 0
}

// Ready returns an error unless the API server's time is known and the local clock agrees with it.
func (c *Clock) Ready() error {
	c.mu.Lock()
	known := !c.last.at.IsZero()
	c.mu.Unlock()
	if !known {
		return errors.New("the API server's time is not known yet")
	}
	return tooFar(c.Difference())
}

// tooFar describes a difference beyond MaxDifference, and the remedy.
func tooFar(d time.Duration) error {
	if d.Abs() <= MaxDifference {
		return nil
	}
	direction := "ahead of"
	if d < 0 {
		direction = "behind"
	}
	return fmt.Errorf(
		"the clock of this replica's node is %s %s the API server's, at most %s is allowed; synchronize both nodes with the same time servers",
		d.Abs().Round(time.Second), direction, MaxDifference)
}

// Wrap has the clock read every answer that comes back through next.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return &observer{next, c} }

// observer reads the Date of answers.
type observer struct {
	next  http.RoundTripper
	clock *Clock
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := o.clock.now()
	response, err := o.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		o.clock.observe(sent, o.clock.now(), date)
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport below.
func (o *observer) WrappedRoundTripper() http.RoundTripper { return o.next }

// observe learns from one answer.
func (c *Clock) observe(sent, received, date time.Time) {
	c.mu.Lock()
	c.last = windowOf(sent, received, date).within(c.last)
	c.mu.Unlock()
	err := tooFar(c.Difference())
	c.mu.Lock()
	changed := c.differs != (err != nil)
	c.differs = err != nil
	c.mu.Unlock()
	switch {
	case changed && err != nil:
		c.log.Error(err, "not ready")
	case changed:
		c.log.Info("the clock agrees with the API server's again")
	}
}
