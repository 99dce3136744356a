package main

import (
	"strings"
	"testing"
	"time"
)

func TestProbeStatus(t *testing.T) {
	t.Parallel()
	t.Run("message", func(t *testing.T) {
		t.Parallel()
		now := time.Hour
		s := &probeStatus{}
		if got := s.answer(startupProbe, now); got.OK {
			t.Errorf("started before the first sample: %+v", got)
		}
		s.SampledAt = now
		s.enqueue("gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 8Gi")
		for _, p := range []probe{startupProbe, readinessProbe} {
			if got := s.answer(p, now); !got.OK {
				t.Errorf("%s returned the message: %+v", p, got)
			}
		}
		if got := s.answer(livenessProbe, now); got.OK || got.Text != "gpuslice terminated python (pid 214, 9.1Gi) in trainer: 9.1Gi of 8Gi" {
			t.Errorf("the message was not returned: %+v", got)
		}
		if got := s.answer(livenessProbe, now); !got.OK {
			t.Errorf("it was returned twice: %+v", got)
		}
	})
	t.Run("never fails twice in a row", func(t *testing.T) {
		t.Parallel()
		now := time.Hour
		s := &probeStatus{}
		s.SampledAt = now
		before := false
		for i := range 20 {
			s.enqueue("something happened")
			failed := !s.answer(livenessProbe, now).OK
			if failed && before {
				t.Fatalf("probe %d failed as the one before: the kubelet would restart the guard", i)
			}
			before = failed
		}
	})
	t.Run("many messages", func(t *testing.T) {
		t.Parallel()
		now := time.Hour
		s := &probeStatus{}
		s.SampledAt = now
		for range 100 {
			s.enqueue(strings.Repeat("ä", 60))
		}
		got := s.answer(livenessProbe, now)
		if len(got.Text) > maxEventMessage+3 || !strings.HasPrefix(got.Text, "(84 older messages") ||
			strings.ToValidUTF8(got.Text, "") != got.Text {
			t.Errorf("%d bytes: %q", len(got.Text), got.Text)
		}
	})
	t.Run("a stuck guard", func(t *testing.T) {
		t.Parallel()
		now := time.Hour
		s := &probeStatus{}
		s.SampledAt = now
		for _, p := range []probe{startupProbe, livenessProbe, readinessProbe, statusProbe} {
			if got := s.answer(p, now+stuckAfter); !got.OK {
				t.Errorf("%s: unhealthy in time: %+v", p, got)
			}
			for range 4 {
				if got := s.answer(p, now+stuckAfter+time.Second); got.OK || got.Text != "the guard has not sampled the devices for 26s" {
					t.Errorf("%s: %+v", p, got)
				}
			}
		}
	})
	t.Run("not enforcing", func(t *testing.T) {
		t.Parallel()
		now := time.Hour
		s := &probeStatus{}
		s.SampledAt, s.NotEnforcing = now, "the driver does not answer"
		if got := s.answer(readinessProbe, now); got.OK || !strings.Contains(got.Text, "the driver does not answer") {
			t.Errorf("ready: %+v", got)
		}
		if !s.answer(livenessProbe, now).OK || !s.answer(startupProbe, now).OK {
			t.Error("a guard that does not enforce must neither be restarted nor keep the tenant from starting")
		}
	})
	t.Run("a termination that hangs", func(t *testing.T) {
		t.Parallel()
		s := &probeStatus{SampledAt: time.Hour, StuckFrom: time.Hour + 5*time.Second}
		for _, p := range []probe{startupProbe, livenessProbe, readinessProbe} {
			if got := s.answer(p, time.Hour+5*time.Second); !got.OK {
				t.Errorf("%s: unhealthy in time: %+v", p, got)
			}
			for range 4 {
				if got := s.answer(p, time.Hour+6*time.Second); got.OK {
					t.Errorf("%s: healthy while a termination hangs", p)
				}
			}
		}
	})
}
