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
	"github.com/gpuslice/gpuslice/guard/proc"
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
	p := &publisher{file: f, log: slog.New(slog.NewTextHandler(io.Discard, nil)), deliveries: deliveries{path: observationIn(t)}}
	p.enqueueTermination(ended)
	p.observe(guard.State{})
	if err := f.awaitUpdate(func(s *probeStatus) { s.answer(livenessProbe, proc.SinceBoot()) }); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), ended+"\n") {
		t.Errorf("a guard that is killed after its probe leaves %q, %v", text, err)
	}
	if p.isOverdue() {
		t.Error("overdue at once")
	}
	p.deliveries.undelivered[0].dueAt = 0
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

func TestRepeats(t *testing.T) {
	t.Parallel()
	const reason = "gpu0: the driver does not answer"
	noticed := filepath.Join(t.TempDir(), "observed")
	if err := os.WriteFile(noticed, []byte(`{"state":"degraded","notices":[{"kind":"not-enforcing","text":"x"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want int
	}{
		"nothing was observed":            {observationIn(t), maxRepeats},
		"only something else arrived":     {observationIn(t, ended), maxRepeats},
		"it arrived":                      {noticed, 0},
		"an older pod has no observation": {"/nowhere", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, said := &deliveries{path: c.path}, 0
			for now := time.Hour; now < 6*time.Hour; now += time.Second {
				if d.isToRepeat(reason, now) {
					said++
				}
			}
			if said != c.want {
				t.Errorf("said %d times, want %d", said, c.want)
			}
		})
	}
	t.Run("while it lasts", func(t *testing.T) {
		t.Parallel()
		d := &deliveries{path: observationIn(t)}
		for _, step := range []struct {
			reason string
			at     time.Duration
			want   bool
		}{
			{reason, time.Hour, false}, {reason, time.Hour + repeatPeriod, true}, {reason, time.Hour + repeatPeriod + 1, false},
			{"", time.Hour + 2*repeatPeriod, false}, {"", 2 * time.Hour, false},
			{reason, 3 * time.Hour, false}, {reason, 3*time.Hour + repeatPeriod, true},
		} {
			if got := d.isToRepeat(step.reason, step.at); got != step.want {
				t.Errorf("%q at %s: %v, want %v", step.reason, step.at, got, step.want)
			}
		}
	})
}

// TestPublisherRepeats has the first message dropped by the kubelet, and the next probe after a while return it again.
func TestPublisherRepeats(t *testing.T) {
	t.Parallel()
	f, _ := statusFileIn(t)
	p := &publisher{file: f, log: slog.New(slog.NewTextHandler(io.Discard, nil)), deliveries: deliveries{path: observationIn(t)}}
	blind := guard.State{Late: "the driver does not answer"}
	probe := func() (text string) {
		if err := f.awaitUpdate(func(s *probeStatus) { text = s.answer(livenessProbe, proc.SinceBoot()).Text }); err != nil {
			t.Fatal(err)
		}
		return text
	}
	p.observe(blind)
	if got := probe(); got != "ok" {
		t.Errorf("at once: %q", got)
	}
	p.deliveries.repeatAt = 1
	p.observe(blind)
	if got := probe(); !strings.HasPrefix(got, cannotEnforce) {
		t.Errorf("after a while: %q", got)
	}
}
