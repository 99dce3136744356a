package policies

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// profileTheirs is a variable as the user wrote it. Readable is false when the value is known at run time only.
type profileTheirs struct {
	name, value string
	readable    bool
}

// profileLookup returns the user's value of a variable. Of duplicates the last one counts, as for the kubelet.
func profileLookup(c *corev1.Container, name string) (profileTheirs, bool) {
	for i := len(c.Env) - 1; i >= 0; i-- {
		e := &c.Env[i]
		if e.Name != name {
			continue
		}
		readable := e.ValueFrom == nil && !strings.Contains(e.Value, "$(")
		return profileTheirs{name: name, value: strings.ReplaceAll(e.Value, "$$", "$"), readable: readable}, true
	}
	return profileTheirs{}, false
}

// profileResolve replaces a word that is nothing but a reference, "$(NAME)", "${NAME}" or "$NAME", by the user's literal
// value; readable is false when it cannot be known here.
func profileResolve(c *corev1.Container, word string) (value string, readable bool) {
	if !strings.Contains(word, "$") {
		return word, true
	}
	name := strings.TrimPrefix(word, "$")
	if len(name) > 2 && (name[0] == '(' && strings.HasSuffix(name, ")") || name[0] == '{' && strings.HasSuffix(name, "}")) {
		name = name[1 : len(name)-1]
	}
	theirs, found := profileLookup(c, name)
	return theirs.value, found && theirs.readable
}

// errProfileWider says that a user's value is a limit, but not one that holds the process in its slice.
var errProfileWider = errors.New("more than the slice allows")

// profileReaders are the ways to compare a user's own value with the limit. Each returns nil when the user's value is at
// least as strict as ours would be.
var profileReaders = map[string]func(value string, a profileAmounts) error{
	"fraction":          profileReadFraction,
	"bytes":             profileReadBytes,
	"mebibytes":         profileReadMebibytes,
	"headroomMebibytes": profileReadHeadroom,
	"allocConf":         profileReadAllocConf,
}

func profileReadFraction(value string, a profileAmounts) error {
	most, err := profileFraction(a)
	if err != nil {
		return err
	}
	return profileAtMost(value, most)
}

// profileAtMost compares two decimal fractions; zero, negative and unreadable ones are no limit.
func profileAtMost(value, most string) error {
	got, err := strconv.ParseFloat(value, 64)
	if err != nil || !(got > 0 && got <= 1) {
		return fmt.Errorf("%q is no fraction above 0", profileShorten(value))
	}
	if limit, err := strconv.ParseFloat(most, 64); err != nil || got > limit {
		return fmt.Errorf("%w (%s)", errProfileWider, most)
	}
	return nil
}

func profileReadBytes(value string, a profileAmounts) error {
	if percent, isPercent := strings.CutSuffix(value, "%"); isPercent {
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil {
			return fmt.Errorf("%q is no percentage", profileShorten(value))
		}
		return profileReadFraction(strconv.FormatFloat(share/100, 'f', -1, 64), a)
	}
	return profileReadInteger(value, 1, a)
}

func profileReadMebibytes(value string, a profileAmounts) error {
	return profileReadInteger(value, profileMiB, a)
}

// profileReadInteger compares a number of units with the budget; zero and negative numbers are no limit.
func profileReadInteger(value string, unit int64, a profileAmounts) error {
	budget, err := a.budgetBytes()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no number above 0", profileShorten(value))
	}
	if n > budget/unit {
		return fmt.Errorf("%w (%d)", errProfileWider, budget/unit)
	}
	return nil
}

func profileReadHeadroom(value string, a profileAmounts) error {
	least, err := a.beyond()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(value, 10, 64)
	// TensorFlow ignores the variable when it is more than what is free.
	if err != nil || n < (least+profileMiB-1)/profileMiB || n > (a.total-a.allowance)/profileMiB {
		return fmt.Errorf("%q does not leave %s of the device free", profileShorten(value), profileSize(least))
	}
	return nil
}

// profileShorten bounds a user's text before it goes into a sentence.
func profileShorten(text string) string {
	const limit = 40
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
