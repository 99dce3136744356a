package usage

import (
	"fmt"
	"math"
	"time"
)

// Second is a time in whole seconds, since 1970.
type Second int64

// SecondOf returns t, rounded down.
func SecondOf(t time.Time) Second { return Second(t.Unix()) }

// Time returns s in UTC.
func (s Second) Time() time.Time { return time.Unix(int64(s), 0).UTC() }

// MarshalText implements encoding.TextMarshaler.
func (s Second) MarshalText() ([]byte, error) { return []byte(s.Time().Format(time.RFC3339)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Second) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return fmt.Errorf("read a time: %w", err)
	}
	*s = SecondOf(t)
	return nil
}

const dayLength Second = 24 * 60 * 60

// startOfDay is when the UTC day of s starts.
func (s Second) startOfDay() Second { return s - s%dayLength }

// Amount is an amount of GPUs, or that times seconds. Sums are exact, and saturate.
type Amount struct {
	Memory  int64 `json:"memory,omitempty"`  // MiB
	Devices int64 `json:"devices,omitempty"` // in 1/28,828,800 of a device
}

func (a Amount) plus(b Amount) Amount {
	return Amount{addSaturated(a.Memory, b.Memory), addSaturated(a.Devices, b.Devices)}
}

// less is a without b, at least nothing.
func (a Amount) less(b Amount) Amount {
	return Amount{max(a.Memory-b.Memory, 0), max(a.Devices-b.Devices, 0)}
}

func (a Amount) atMost(b Amount) Amount {
	return Amount{min(a.Memory, b.Memory), min(a.Devices, b.Devices)}
}

func (a Amount) times(seconds Second) Amount {
	return Amount{multiplySaturated(a.Memory, int64(seconds)), multiplySaturated(a.Devices, int64(seconds))}
}

// addSaturated adds two numbers that are not negative.
func addSaturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// multiplySaturated multiplies two numbers that are not negative.
func multiplySaturated(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
