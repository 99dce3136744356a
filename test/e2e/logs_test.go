package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// said is a line of the guard's log.
type said struct {
	Time                                    time.Time
	Msg, Message, Container, Signal, Reason string
	PID                                     int
}

// awaitLine follows what a container prints, from the beginning, to the first line that is as wanted.
func (s *stage) awaitLine(pod, container, what string, wanted func(line string) bool) {
	s.Helper()
	s.awaitPod(pod, "start of "+container, func(p *corev1.Pod) bool {
		c := status(p, container)
		return c.State.Running != nil || c.State.Terminated != nil
	})
	ctx, cancel := context.WithTimeout(s.Context(), within)
	defer cancel()
	stream, err := s.node.Client.CoreV1().Pods(s.namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		s.Fatal(err)
	}
	defer stream.Close()
	lines, last := bufio.NewScanner(stream), ""
	for lines.Scan() {
		if last = lines.Text(); wanted(last) {
			return
		}
	}
	s.Fatalf("%s of %s ended without %s (%v, %v); its last line is %q", container, pod, what, lines.Err(), ctx.Err(), last)
}

// awaitSaid follows the guard's log, from the beginning, to the first line of a kind ("near limit", "termination result") with all words
// in its message.
func (s *stage) awaitSaid(pod, kind string, words ...string) said {
	s.Helper()
	var found said
	s.awaitLine(pod, limits.GuardContainer, fmt.Sprintf("%s %q", kind, words), func(line string) bool {
		var l said
		if json.Unmarshal([]byte(line), &l) != nil || l.Msg != kind {
			return false
		}
		for _, w := range words {
			if !strings.Contains(l.Message, w) {
				return false
			}
		}
		found = l
		return true
	})
	return found
}

// log is everything that a container printed so far.
func (s *stage) log(pod, container string, o corev1.PodLogOptions) string {
	s.Helper()
	o.Container = container
	stream, err := s.node.Client.CoreV1().Pods(s.namespace).GetLogs(pod, &o).Stream(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// saidOf are the lines of those kinds in the guard's log so far.
func (s *stage) saidOf(pod string, kinds ...string) []said {
	s.Helper()
	var all []said
	for line := range strings.Lines(s.log(pod, limits.GuardContainer, corev1.PodLogOptions{})) {
		var l said
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		for _, k := range kinds {
			if l.Msg == k {
				all = append(all, l)
			}
		}
	}
	return all
}

// endsNobody checks that the guard has not tried to end anything.
func (s *stage) endsNobody(pod string) {
	s.Helper()
	if acts := s.saidOf(pod, "terminate process", "terminate container", "termination result"); len(acts) > 0 {
		s.Errorf("the guard of %s went for somebody: %+v", pod, acts)
	}
}

// termTime is when the first process of a tenant was asked to end.
func (s *stage) termTime(pod, container string) time.Time {
	s.Helper()
	for line := range strings.Lines(s.log(pod, container, corev1.PodLogOptions{Timestamps: true})) {
		at, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text != "term" {
			continue
		}
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			s.Fatal(err)
		}
		return when
	}
	s.Fatalf("%s of %s was not told to end", container, pod)
	return time.Time{}
}

// neverNoticed checks that a tenant's heart has beaten on without a gap, in one process, and at least so often.
func (s *stage) neverNoticed(pod, container string, atLeast int) {
	s.Helper()
	if c := status(s.get(pod), container); c.State.Running == nil || c.RestartCount > 0 {
		s.Errorf("%s of %s does not run as it did: %+v", container, pod, c)
	}
	seen := 0
	s.awaitLine(pod, container, fmt.Sprintf("%d beats", atLeast), func(line string) bool {
		if strings.HasPrefix(line, "beat ") {
			seen++
		}
		return seen >= atLeast
	})
	next, first := 0, 0
	for line := range strings.Lines(s.log(pod, container, corev1.PodLogOptions{})) {
		var beat, pid int
		if _, err := fmt.Sscanf(line, "beat %d pid=%d", &beat, &pid); err != nil || !strings.HasSuffix(line, "\n") {
			continue // without its end, a line that is being written has a shorter number
		}
		if next == 0 {
			next, first = beat, pid
		}
		if beat != next || pid != first {
			s.Fatalf("%s of %s: beat %d of process %d where %d of %d was due", container, pod, beat, pid, next, first)
		}
		next++
	}
}

// awaitBeats follows a tenant for so many beats more than it has printed; five are a second.
func (s *stage) awaitBeats(pod, container string, more int) {
	s.Helper()
	have := strings.Count(s.log(pod, container, corev1.PodLogOptions{}), "beat ")
	n := 0
	s.awaitLine(pod, container, fmt.Sprintf("%d beats", have+more), func(line string) bool {
		if strings.HasPrefix(line, "beat ") {
			n++
		}
		return n >= have+more
	})
}
