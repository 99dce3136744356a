package main

import (
	"strings"
	"testing"
	"time"
)

func TestAMessageFailsOneLivenessProbe(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	if got := b.answer(probeStartup, now); got.OK {
		t.Errorf("started before the first look: %+v", got)
	}
	b.saw(now, "")
	b.post("gpuslice ended python (pid 214, 9.1Gi) in trainer: 9.1Gi of 8Gi")
	for _, p := range []probe{probeStartup, probeReadiness} {
		if got := b.answer(p, now); !got.OK {
			t.Errorf("%s carried the message: %+v", p, got)
		}
	}
	if got := b.answer(probeLiveness, now); got.OK || got.Text != "gpuslice ended python (pid 214, 9.1Gi) in trainer: 9.1Gi of 8Gi" {
		t.Errorf("the message was not carried: %+v", got)
	}
	if got := b.answer(probeLiveness, now); !got.OK {
		t.Errorf("it was carried twice: %+v", got)
	}
}

func TestMessagesNeverFailTwoProbesInARow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	b.saw(now, "")
	before := false
	for i := range 20 {
		b.post("something happened")
		failed := !b.answer(probeLiveness, now).OK
		if failed && before {
			t.Fatalf("probe %d failed as the one before: the kubelet would start the guard again", i)
		}
		before = failed
	}
}

func TestManyMessagesFitOneEvent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	b.saw(now, "")
	for range 100 {
		b.post(strings.Repeat("ä", 60))
	}
	got := b.answer(probeLiveness, now)
	if len(got.Text) > longestMessage+3 || !strings.HasPrefix(got.Text, "(84 older messages") || strings.ToValidUTF8(got.Text, "") != got.Text {
		t.Errorf("%d bytes: %q", len(got.Text), got.Text)
	}
}

func TestALoopThatStandsStillIsUnhealthyForEveryProbe(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	b.saw(now, "")
	for _, p := range []probe{probeStartup, probeLiveness, probeReadiness, probeStatus} {
		if got := b.answer(p, now.Add(stuckAfter)); !got.OK {
			t.Errorf("%s: unhealthy in time: %+v", p, got)
		}
		for range 4 {
			if got := b.answer(p, now.Add(stuckAfter+time.Second)); got.OK || got.Text != "the guard has not looked at the devices for 61s" {
				t.Errorf("%s: %+v", p, got)
			}
		}
	}
}

func TestABlindGuardIsNotReadyAndLives(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	b.saw(now, "the driver does not answer")
	if got := b.answer(probeReadiness, now); got.OK || !strings.Contains(got.Text, "the driver does not answer") {
		t.Errorf("ready: %+v", got)
	}
	if !b.answer(probeLiveness, now).OK || !b.answer(probeStartup, now).OK {
		t.Error("a blind guard must neither be started again nor keep the tenant from starting")
	}
}

func TestWhatNoProbeCarriedIsLeftForTheLastWords(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	b := &board{}
	b.saw(now, "")
	b.post("carried")
	if got := b.answer(probeLiveness, now); got.Text != "carried" {
		t.Fatalf("the message was not carried: %+v", got)
	}
	if got := b.left(); got != "" {
		t.Errorf("what a probe carried is left: %q", got)
	}
	b.post("one")
	b.post("two")
	if got := b.left(); got != "one; two" {
		t.Errorf("left is %q", got)
	}
}
