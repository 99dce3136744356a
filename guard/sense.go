package guard

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// sense judges how far each device's reading can be relied on, and says so when
// it turns.
func (t *turn) sense() {
	t.judge("", t.sample.Fault)
	for _, d := range t.sample.Devices {
		sensor := t.state.sensor(d.ID)
		if !d.Listed.After(sensor.Listed) && d.Fault == "" {
			continue // the list of an earlier look: no evidence either way
		}
		fault := t.untrusted(d)
		t.fresh[d.ID] = fault == "" && t.sample.Fault == ""
		t.judge(d.ID, fault)
	}
	t.strays()
}

// judge counts a good or failing look at a device. A device is blind after three
// failing ones, and sees again after three good ones in a row, so that a sensor
// that flaps is blind.
func (t *turn) judge(device, fault string) {
	s := t.state.sensor(device)
	if fault != "" {
		s.Bad, s.Good, s.Reason = s.Bad+1, 0, fault
		if s.Bad >= blindAfter && !s.Blind {
			s.Blind = true
			t.say(Action{Kind: Blind, Device: device, Reason: fault})
		}
		return
	}
	s.Good++
	if s.Good < sightAfter {
		return
	}
	s.Bad = 0
	if s.Blind {
		s.Blind = false
		t.say(Action{Kind: Sighted, Device: device})
	}
}

// untrusted returns why nothing may be concluded from a device's list, or an
// empty text when something may.
//
// One process that cannot be placed spoils the whole list: a driver that hands
// out PIDs of another namespace may give some that happen to exist in ours.
func (t *turn) untrusted(d Device) string {
	if d.Fault != "" {
		return d.Fault
	}
	known, ours := 0, 0
	for _, p := range d.Processes {
		if t.state.fading(d.ID, p.PID) {
			continue
		}
		if p.Container == "" {
			return fmt.Sprintf("the device lists pid %d, which is no process of this pod", p.PID)
		}
		ours++
		if p.Known {
			known++
		}
	}
	if ours > 0 && known == 0 {
		return fmt.Sprintf("the device lists %s of this pod and gives no memory for any", count(ours, "process", "processes"))
	}
	return ""
}

// strays reports each container without a slice that uses a device, once.
func (t *turn) strays() {
	for _, d := range t.sample.Devices {
		if !t.fresh[d.ID] {
			continue
		}
		for _, p := range d.Processes {
			_, sliced := t.limits.Container(p.Container)
			if sliced || p.Container == "" || p.Container == limits.GuardContainer || slices.Contains(t.state.Strays, p.Container) {
				continue
			}
			t.state.Strays = append(t.state.Strays, p.Container)
			t.say(Action{Kind: Stray, Container: p.Container, Device: d.ID, Process: p, HeldBytes: p.UsedBytes})
		}
	}
}
