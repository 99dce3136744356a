package guard

import (
	"slices"
	"time"
)

// State is what the guard knows between two looks. The zero value is a guard
// that has seen nothing. Step never changes the State it is given.
type State struct {
	Looked  time.Time // of the newest sample
	Watches []Watch   // by container and device, sorted
	Sensors []Sensor  // by device, sorted; "" is the whole sensor

	Ending *Order    // in hand; nil: none
	Acted  time.Time // when the last ending was settled; no older list is evidence
	Rest   bool      // Acted is followed by the settle time
	Ends   []End     // that count, oldest first

	Fading []Fade   // ended processes whose memory has yet to go
	Strays []string // containers without a slice that were reported
}

// Watch is one container on one device.
type Watch struct {
	Container, Device string

	HeldBytes int64
	PeakBytes int64
	WallBytes int64   // what it is held against at present
	FillRate  float64 // bytes a second, 0 when it does not grow

	High       int       // trusted looks in a row at or above the soft mark
	Warned     bool      // and not yet clearly below
	Below      time.Time // since when clearly below the soft mark
	Over       time.Time // since when past the wall without a break; zero: it is not
	Confirming bool      // over for the grace; the next look decides
	Said       string    // why it was left alone in this run, once said

	Processes []Process // of the last trusted list
}

// Sensor is how well one device can be read.
type Sensor struct {
	Device string
	Bad    int // failing looks, until three good ones in a row
	Good   int // good looks in a row
	Blind  bool
	Reason string    // of the last failing look
	Listed time.Time // of the newest list
	Full   bool      // the device had no room to speak of at the last look
}

// End is one ending that counts towards MaxEnds.
type End struct {
	Container string
	At        time.Time
}

// Fade is an ended process whose memory the device may still show.
type Fade struct {
	Device  string
	Process Process
	Until   time.Time
}

func (s State) clone() State {
	s.Watches = slices.Clone(s.Watches)
	s.Sensors = slices.Clone(s.Sensors)
	s.Ends = slices.Clone(s.Ends)
	s.Fading = slices.Clone(s.Fading)
	s.Strays = slices.Clone(s.Strays)
	return s
}

// watch returns the watch of a container on a device, made when it is new. The
// pointer is good until the next call.
func (s *State) watch(container, device string) *Watch {
	i, found := slices.BinarySearchFunc(s.Watches, Watch{Container: container, Device: device}, byPlace)
	if !found {
		s.Watches = slices.Insert(s.Watches, i, Watch{Container: container, Device: device})
	}
	return &s.Watches[i]
}

// sensor returns the sensor of a device, made when it is new. The pointer is
// good until the next call.
func (s *State) sensor(device string) *Sensor {
	i, found := slices.BinarySearchFunc(s.Sensors, Sensor{Device: device}, byDevice)
	if !found {
		s.Sensors = slices.Insert(s.Sensors, i, Sensor{Device: device})
	}
	return &s.Sensors[i]
}

// Blind returns why the guard cannot hold a container to its slice, or an empty
// text while it can.
func (s State) Blind() string {
	for _, sensor := range s.Sensors {
		if sensor.Blind {
			return sensor.Reason
		}
	}
	return ""
}

// ends counts the endings of a container after a time.
func (s State) ends(container string, after time.Time) int {
	n := 0
	for _, e := range s.Ends {
		if e.Container == container && e.At.After(after) {
			n++
		}
	}
	return n
}

// fading reports whether the process on the device is one that was ended.
func (s State) fading(device string, pid int) bool {
	return slices.ContainsFunc(s.Fading, func(f Fade) bool { return f.Device == device && f.Process.PID == pid })
}

// breakRun ends an unbroken run of looks past the wall.
func (w *Watch) breakRun() {
	w.Over, w.Confirming, w.Said = time.Time{}, false, ""
}
