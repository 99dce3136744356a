package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard"
)

const ended = "gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 8Gi on gpu0 for 3.2s"

// observationIn writes an observation with these terminations.
func observationIn(t *testing.T, terminations ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "observed")
	text := ""
	if len(terminations) > 0 {
		text = `{"state":"enforced","terminations":[{"at":"2026-03-04T12:00:00Z","text":"` + strings.Join(terminations, `"},{"text":"`) + `"}]}`
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	const now = time.Hour
	for name, c := range map[string]struct {
		path      string
		notBefore time.Duration
		asked     time.Duration
		want      bool
	}{
		"in time":                         {observationIn(t), 0, now + arrivalTimeout - 1, false},
		"nothing was observed":            {observationIn(t), 0, now + arrivalTimeout, true},
		"something else arrived":          {observationIn(t, "gpuslice terminated python (pid 7)"), 0, now + arrivalTimeout, true},
		"it arrived":                      {observationIn(t, "another", ended), 0, now + arrivalTimeout, false},
		"its beginning arrived":           {observationIn(t, ended[:40]+"..."), 0, now + arrivalTimeout, false},
		"a forged observation":            {observationIn(t, "..."), 0, now + arrivalTimeout, true},
		"an older pod has no observation": {"/nowhere", 0, now + arrivalTimeout, false},
		"the guard ended lately":          {observationIn(t), now + deliveryPause, now + deliveryPause - 1, false},
		"the guard ended a while ago":     {observationIn(t), now + deliveryPause, now + deliveryPause, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &deliveries{path: c.path, notBefore: c.notBefore}
			d.add(ended, now)
			if got := d.overdue(c.asked); got != c.want {
				t.Errorf("overdue: %v, want %v", got, c.want)
			}
		})
	}
	t.Run("each message has its own time", func(t *testing.T) {
		t.Parallel()
		d := &deliveries{path: observationIn(t, "one")}
		d.add("one", now)
		d.add("two", now+time.Minute)
		if d.overdue(now + arrivalTimeout) {
			t.Error("overdue with the first message")
		}
		if !d.overdue(now + time.Minute + arrivalTimeout) {
			t.Error("the second message is not overdue")
		}
		if got := d.messages(); !slices.Equal(got, []string{"two"}) {
			t.Errorf("left is %q", got)
		}
	})
}

func TestPublisherOverdue(t *testing.T) {
	t.Parallel()
	f, path := statusFileIn(t)
	p := &publisher{file: f, log: slog.New(slog.NewTextHandler(io.Discard, nil)), arrivals: deliveries{path: observationIn(t)}}
	p.enqueueTermination(ended)
	p.observe(guard.State{})
	if err := f.awaitUpdate(func(s *probeStatus) { s.answer(livenessProbe, sinceBoot()) }); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), ended+"\n") {
		t.Errorf("a guard that is killed after its probe leaves %q, %v", text, err)
	}
	if p.isOverdue() {
		t.Error("overdue at once")
	}
	p.arrivals.undelivered[0].dueAt = 0
	p.observe(guard.State{Usages: []guard.Usage{{OverSince: time.Now()}}})
	if p.isOverdue() {
		t.Error("overdue while a container is over its limit")
	}
	p.observe(guard.State{InProgress: &guard.Order{}})
	if p.isOverdue() {
		t.Error("overdue while a termination is in progress")
	}
	p.observe(guard.State{})
	if !p.isOverdue() {
		t.Error("not overdue")
	}
	if got := p.unreported(); got != ended {
		t.Errorf("the termination message is %q", got)
	}
}
