package frameworks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
)

// theirs is a variable as the user wrote it. Readable is false when the value is known at run time only.
type theirs struct {
	name, value string
	readable    bool
}

// lookup returns the user's value of a variable. Of duplicates the last one counts, as for the kubelet.
func lookup(c *corev1.Container, name string) (theirs, bool) {
	for i := len(c.Env) - 1; i >= 0; i-- {
		e := &c.Env[i]
		if e.Name != name {
			continue
		}
		readable := e.ValueFrom == nil && !strings.Contains(e.Value, "$(")
		return theirs{name: name, value: strings.ReplaceAll(e.Value, "$$", "$"), readable: readable}, true
	}
	return theirs{}, false
}

// errWider is the error for a user's value that is a limit, but not one that holds the process in its slice.
var errWider = errors.New("more than the slice allows")

// readers are the ways to compare a user's own value with the limit. Each returns nil when the user's value is at
// least as strict as ours would be.
var readers = map[string]func(value string, a amounts) error{
	"fraction":          readFraction,
	"bytes":             readBytes,
	"mebibytes":         func(value string, a amounts) error { return readInteger(value, mebibyte, a) },
	"headroomMebibytes": readHeadroom,
	"allocConf":         readAllocConf,
}

func readFraction(value string, a amounts) error {
	most, err := fraction(a)
	if err != nil {
		return err
	}
	return atMost(value, most)
}

// atMost compares two decimal fractions; zero, negative and unreadable ones are no limit.
func atMost(value, most string) error {
	got, err := strconv.ParseFloat(value, 64)
	if err != nil || !(got > 0 && got <= 1) {
		return fmt.Errorf("%q is no fraction above 0", shorten.Text(value, maxQuoted))
	}
	if limit, err := strconv.ParseFloat(most, 64); err != nil || got > limit {
		return fmt.Errorf("%w (%s)", errWider, most)
	}
	return nil
}

func readBytes(value string, a amounts) error {
	if percent, isPercent := strings.CutSuffix(value, "%"); isPercent {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil {
			return fmt.Errorf("%q is no percentage", shorten.Text(value, maxQuoted))
		}
		return readFraction(strconv.FormatFloat(share/100, 'f', -1, 64), a)
	}
	return readInteger(value, 1, a)
}

// readInteger compares a number of units with the budget; zero and negative numbers are no limit.
func readInteger(value string, unit int64, a amounts) error {
	budget, err := a.budgetBytes()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no number above 0", shorten.Text(value, maxQuoted))
	}
	if n > budget/unit {
		return fmt.Errorf("%w (%d)", errWider, budget/unit)
	}
	return nil
}

func readHeadroom(value string, a amounts) error {
	least, err := a.beyond()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	// TensorFlow ignores the variable when it exceeds the free memory.
	if err != nil || n < (least+mebibyte-1)/mebibyte || n > (a.total-a.allowance)/mebibyte {
		return fmt.Errorf("%q does not leave %s of the device free", shorten.Text(value, maxQuoted), size(least))
	}
	return nil
}
