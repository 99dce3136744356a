package quantity

import (
	"fmt"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// MiB is an amount of GPU memory in mebibytes, the unit in which pools, slices and charges are counted.
type MiB int64

const (
	Mebibyte  = 1 << 20      // bytes
	MaxMemory = MiB(1) << 30 // one pebibyte: more than any device, far from overflow when bytes are summed
	// MaxText bounds parsed text: "1e10000000" costs seconds in a general parser.
	MaxText = 20
)

// Bytes is m in bytes.
func (m MiB) Bytes() int64 { return int64(m) * Mebibyte }

// String prints m as a quantity that ParseMemory reads back: "8Gi", "9728Mi".
func (m MiB) String() string {
	if m != 0 && m%1024 == 0 {
		return strconv.FormatInt(int64(m)/1024, 10) + "Gi"
	}
	return strconv.FormatInt(int64(m), 10) + "Mi"
}

// Human prints m for people, in GiB with one decimal if that is more precise: "9.5Gi".
func (m MiB) Human() string {
	if m < 1024 || m%1024 == 0 {
		return m.String()
	}
	return strconv.FormatFloat(float64(m)/1024, 'f', 1, 64) + "Gi"
}

var memoryText = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,6})?(Ki|Mi|Gi|Ti|k|M|G|T)?$`)

// ParseMemory reads an amount of memory as UnmarshalText does.
func ParseMemory(text string) (m MiB, err error) {
	err = m.UnmarshalText([]byte(text))
	return m, err
}

// UnmarshalText reads an amount of memory such as "8Gi", "9728Mi" or "8G" (bytes without a suffix), rounded down to
// whole MiB. It accepts ASCII digits only, at most 20 characters, no sign and no exponent, from 1Mi to 1Pi.
func (m *MiB) UnmarshalText(text []byte) error {
	const accepted = `accepted: a positive quantity such as "8Gi" or "9728Mi"`
	*m = 0
	if len(text) > MaxText {
		return fmt.Errorf("%s is longer than %d characters; %s", message.Quote(string(text)), MaxText, accepted)
	}
	if !memoryText.Match(text) {
		return fmt.Errorf("%q is not an amount of memory; %s", text, accepted)
	}
	q, err := resource.ParseQuantity(string(text))
	if err != nil {
		return fmt.Errorf("%q is not an amount of memory; %s", text, accepted)
	}
	if q.CmpInt64(MaxMemory.Bytes()) > 0 {
		return fmt.Errorf("%q is more than 1Pi; %s", text, accepted)
	}
	if q.Value() < Mebibyte {
		return fmt.Errorf("%q is less than 1Mi (a number without a suffix counts bytes); %s", text, accepted)
	}
	*m = MiB(q.Value() / Mebibyte)
	return nil
}

// MarshalText prints m as String does.
func (m MiB) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
