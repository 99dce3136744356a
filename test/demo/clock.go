package demo

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// ErrNoticed is wrapped by the error about a neighbor that noticed something.
var ErrNoticed = errors.New("the neighbor noticed something")

// Within bounds every step but the first build.
const Within = 2 * time.Minute

// Clock prints lines behind the seconds since the first pod was created.
type Clock struct {
	Out   io.Writer
	Began time.Time
}

func (c Clock) Say(format string, args ...any) {
	fmt.Fprintf(c.Out, "%5.1fs  %s\n", time.Since(c.Began).Seconds(), fmt.Sprintf(format, args...))
}

// Place is a container on the node.
type Place struct{ Namespace, Pod, Container string }

// Quiet and Hog are the two pods, as their files name them.
func Quiet() Place { return Place{"demo-a", "quiet", "inference"} }
func Hog() Place   { return Place{"demo-b", "hog", "trainer"} }

// FollowLog prints a guard's log until it has terminated something.
func (c Clock) FollowLog(log io.Reader) error {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var l struct{ Msg, Message string }
		if json.Unmarshal(lines.Bytes(), &l) != nil || l.Message == "" {
			continue
		}
		c.Say("guard of hog: %s", l.Message)
		if l.Msg == "termination result" {
			return nil
		}
	}
	return fmt.Errorf("the guard terminated nothing, and its log ended: %w", cmp.Or(lines.Err(), io.ErrUnexpectedEOF))
}

// CountBeats counts the heartbeats in what a tenant printed, and those that are missing among them.
func CountBeats(text string) (have, missing int) {
	last := 0
	for line := range strings.Lines(text) {
		var beat int
		if _, err := fmt.Sscanf(line, "beat %d ", &beat); err == nil {
			have, missing, last = have+1, missing+beat-last-1, beat
		}
	}
	return have, missing
}

// ReportBeats reports how the neighbor fared.
func (c Clock) ReportBeats(beats, gaps int) error {
	c.Say("pod quiet: %d heartbeats, %d missing, same process, no restart", beats, gaps)
	if gaps > 0 || beats == 0 {
		return fmt.Errorf("%w: %d of %d heartbeats are missing", ErrNoticed, gaps, beats+gaps)
	}
	return nil
}
