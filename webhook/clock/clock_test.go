package clock

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
)

// lab is an API server whose clock and the replica's are set by hand.
type lab struct {
	local, server time.Time
	takes         time.Duration // of a call
	clock         *Clock
	logged        []string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	l := &lab{local: noon, server: noon}
	var err error
	l.clock, err = New(prometheus.NewRegistry(), funcr.New(func(_, args string) { l.logged = append(l.logged, args) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	l.clock.now = func() time.Time { return l.local }
	return l
}

// pass lets time pass on both.
func (l *lab) pass(d time.Duration) { l.local, l.server = l.local.Add(d), l.server.Add(d) }

// RoundTrip answers as the API server does, half of the time on either way.
func (l *lab) RoundTrip(*http.Request) (*http.Response, error) {
	l.pass(l.takes / 2)
	date := l.server.UTC().Format(http.TimeFormat)
	l.pass(l.takes / 2)
	return &http.Response{Header: http.Header{"Date": {date}}}, nil
}

// call asks the API server.
func (l *lab) call(t *testing.T) {
	t.Helper()
	if _, err := l.clock.Wrap(l).RoundTrip(nil); err != nil {
		t.Fatal(err)
	}
}

// known fails unless the API server's time is known within this width.
func (l *lab) known(t *testing.T, width time.Duration) {
	t.Helper()
	earliest, latest := l.clock.Bounds()
	if l.server.Before(earliest) || l.server.After(latest) || latest.Sub(earliest) > width {
		t.Errorf("it is %s there, known is %s to %s, wanted within %s", l.server, earliest, latest, width)
	}
}

func TestClock(t *testing.T) {
	t.Run("knows the API server's time whatever its own", func(t *testing.T) {
		for _, ahead := range []time.Duration{0, 90 * time.Second, -time.Hour} {
			l := newLab(t)
			l.local = l.local.Add(ahead)
			for range 20 {
				l.takes = 30 * time.Millisecond
				l.call(t)
				l.known(t, 1100*time.Millisecond)
				l.pass(1700 * time.Millisecond)
			}
			if got := l.clock.Difference(); (got - ahead).Abs() > 1100*time.Millisecond {
				t.Errorf("%s ahead: the difference is %s", ahead, got)
			}
		}
	})
	t.Run("slow answers do not blur it", func(t *testing.T) {
		l := newLab(t)
		l.call(t)
		l.takes = 20 * time.Second
		l.call(t)
		l.known(t, 1100*time.Millisecond)
	})
	t.Run("follows an API server whose clock is set", func(t *testing.T) {
		l := newLab(t)
		l.call(t)
		for _, by := range []time.Duration{time.Minute, -time.Hour} {
			l.server = l.server.Add(by)
			l.call(t)
			l.known(t, 1100*time.Millisecond)
		}
	})
	t.Run("is not ready before the first answer", func(t *testing.T) {
		l := newLab(t)
		if err := l.clock.Ready(); err == nil {
			t.Error("it is ready")
		}
		l.call(t)
		if err := l.clock.Ready(); err != nil {
			t.Error(err)
		}
	})
	t.Run("reports clocks that differ, and once that they agree", func(t *testing.T) {
		l := newLab(t)
		l.local = l.local.Add(90 * time.Second)
		for range 3 {
			l.call(t)
		}
		err := l.clock.Ready()
		if err == nil || !strings.Contains(err.Error(), "1m29s ahead of the API server's, at most 10s is allowed; synchronize") {
			t.Errorf("ready: %v", err)
		}
		l.local = l.server
		for range 3 {
			l.call(t)
		}
		if err := l.clock.Ready(); err != nil {
			t.Error(err)
		}
		if len(l.logged) != 2 || !strings.Contains(l.logged[0], "ahead of") || !strings.Contains(l.logged[1], "agrees") {
			t.Errorf("logged %q", l.logged)
		}
	})
	t.Run("is within seconds of its own time", func(t *testing.T) {
		l := newLab(t)
		l.local = l.local.Add(-8 * time.Second)
		l.call(t)
		if err := l.clock.Ready(); err != nil {
			t.Error(err)
		}
	})
}

func TestWindowPassed(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	w := window{at: noon, earliest: noon, latest: noon.Add(time.Second)}
	for _, c := range []struct {
		name             string
		local, monotonic time.Duration
		earliest, latest time.Duration
	}{
		{"both clocks went on", 100 * time.Second, 100 * time.Second, 99900 * time.Millisecond, 101100 * time.Millisecond},
		{"the machine was suspended", time.Minute, time.Second, 940 * time.Millisecond, 61060 * time.Millisecond},
		{"the local time was set back", -time.Minute, time.Second, -60001 * time.Millisecond, 2001 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.passed(noon, c.local, c.monotonic)
			if got.earliest.Sub(noon) != c.earliest || got.latest.Sub(noon) != c.latest {
				t.Errorf("from %s to %s", got.earliest.Sub(noon), got.latest.Sub(noon))
			}
		})
	}
}
