package idle

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/cgroup"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/node"
)

// A story is a file of testdata with three sections, after a text that says what it
// shows.
//
// limits: "container NAME SLICE [GPUS]", "report PERIOD", "terminate PERIOD", "mps"
// or "dry-run".
// readings: lines "FROM UNTIL DEVICE: PROCESSES | WHAT RAN". A reading every ten
// seconds from FROM until before UNTIL has the device; lines that overlap in time
// are one reading of several devices.
//
//	0s 4h gpu0: trainer 214 2Gi; - 9 20Gi | ran 9
//
// A process outside the pod is in "-", one of a container that is not named in "?";
// its command stands after its size, and "mps" marks a client. What ran is "ran
// PID", "sampled PID", "incomplete", "unread" where the driver does not report it, or
// "fault TEXT". Nothing after "|": nothing ran.
// want: each notice, and each change of what is due, as "TIME notice: MESSAGE" and
// "TIME due: CONTAINERS".
//
// Run with -update to write the want sections again; the difference is the change in
// behavior.
var update = flag.Bool("update", false, "write the want sections of the stories again")

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestStories(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 10 {
		t.Fatalf("found %d stories: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 3 {
				t.Fatalf("%d sections: %v", len(archive.Files), err)
			}
			got := parse(t, string(archive.Files[0].Data), string(archive.Files[1].Data)).run()
			if *update {
				archive.Files[2].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[2].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// story is a pod and what is read of its node.
type story struct {
	pod   node.Pod
	spans []span
}

// span is what one device has for a while.
type span struct {
	from, until time.Duration
	device      node.Device
	activity    *guard.Activity // nil: the driver does not report it
}

// run returns the notices, and the changes of what is due.
func (s *story) run() string {
	var text strings.Builder
	var state State
	due, used := "", map[string]bool{}
	for at := time.Duration(0); at <= s.end(); at += Period {
		r := s.reading(at)
		if len(r.Sample.Devices) == 0 {
			continue // nobody reads
		}
		p := Pod{Pod: s.pod}
		for _, d := range r.Sample.Devices {
			used[d.ID] = used[d.ID] || lists(d, s.pod)
		}
		for _, id := range slices.Sorted(maps.Keys(used)) {
			if used[id] {
				p.Usages = append(p.Usages, guard.Usage{Device: id})
			}
		}
		var notices []Notice
		state, notices = Step(state, p, r)
		for _, n := range notices {
			fmt.Fprintf(&text, "%s notice: %s\n", at, n.Message())
		}
		var names []string
		for _, d := range state.Due() {
			names = append(names, d.Container)
		}
		if now := strings.Join(names, " "); now != due {
			due = now
			fmt.Fprintf(&text, "%s due: %s\n", at, now)
		}
	}
	return strings.ReplaceAll(text.String(), ": \n", ": nothing\n")
}

func (s *story) end() (end time.Duration) {
	for _, span := range s.spans {
		end = max(end, span.until-Period)
	}
	return end
}

func (s *story) reading(at time.Duration) Reading {
	r := Reading{At: epoch.Add(at), Promised: func(uid string) bool { return uid == s.pod.UID }}
	for _, span := range s.spans {
		if at < span.from || at >= span.until {
			continue
		}
		r.Sample.Devices = append(r.Sample.Devices, span.device)
		if span.activity != nil {
			r.Activities = append(r.Activities, *span.activity)
		}
	}
	return r
}

func parse(t *testing.T, limitsText, readings string) *story {
	t.Helper()
	s := &story{pod: node.Pod{UID: "u-1", Namespace: "team-a", Name: "train", Containers: map[string]string{"id-beside": "beside"}}}
	for line := range strings.Lines(limitsText) {
		words := strings.Fields(line)
		switch words[0] {
		case "container":
			c := limits.Container{Name: words[1], SliceBytes: bytesOf(t, words[2]), GPUs: 1}
			if len(words) > 3 {
				c.GPUs = numberOf(t, words[3])
			}
			s.pod.Limits.Containers = append(s.pod.Limits.Containers, c)
			s.pod.Containers["id-"+c.Name] = c.Name
		case "report":
			s.pod.Limits.IdleReport = periodOf(t, words[1])
		case "terminate":
			s.pod.Limits.IdleTerminate = periodOf(t, words[1])
		case "mps":
			s.pod.Limits.ExpectMPS = true
		case "dry-run":
			s.pod.Limits.DryRun = true
		default:
			t.Fatalf("limits: %q is no setting", line)
		}
	}
	for line := range strings.Lines(readings) {
		s.spans = append(s.spans, parseSpan(t, strings.TrimSpace(line)))
	}
	return s
}

func parseSpan(t *testing.T, line string) span {
	t.Helper()
	head, rest, ok := strings.Cut(line, ": ")
	if !ok {
		head, ok = strings.CutSuffix(strings.TrimSuffix(line, " |"), ":")
	}
	times := strings.Fields(head)
	if !ok || len(times) != 3 {
		t.Fatalf("readings: %q is no FROM UNTIL DEVICE:", line)
	}
	out := span{from: periodOf(t, times[0]), until: periodOf(t, times[1]), device: node.Device{Device: guard.Device{ID: times[2]}}}
	list, ran, _ := strings.Cut(rest, "|")
	for text := range strings.SplitSeq(list, ";") {
		if words := strings.Fields(text); len(words) > 0 {
			out.device.Processes = append(out.device.Processes, parseProcess(t, words))
		}
	}
	out.activity = &guard.Activity{Device: times[2], Complete: true, Ran: map[int]bool{}, Sampled: map[int]bool{}}
	words := strings.Fields(ran)
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "ran":
			i++
			out.activity.Ran[numberOf(t, words[i])] = true
		case "sampled":
			i++
			out.activity.Sampled[numberOf(t, words[i])] = true
		case "incomplete":
			out.activity.Complete = false
		case "unread":
			out.activity = nil
			return out
		case "fault":
			out.device.Fault = strings.Join(words[i+1:], " ")
			return out
		default:
			t.Fatalf("readings: %q is nothing that runs", words[i])
		}
	}
	return out
}

func parseProcess(t *testing.T, words []string) node.Process {
	t.Helper()
	if len(words) < 3 {
		t.Fatalf("readings: %q is no CONTAINER PID SIZE", words)
	}
	p := node.Process{Process: guard.Process{PID: numberOf(t, words[1]), Start: 1, UsedBytes: bytesOf(t, words[2]), Known: true}}
	switch words[0] {
	case "-":
		p.Member = cgroup.Member{PodUID: "u-2", ContainerID: "id-other"}
	case "?":
		p.Member = cgroup.Member{PodUID: "u-1", ContainerID: "id-unnamed"}
	default:
		p.Member = cgroup.Member{PodUID: "u-1", ContainerID: "id-" + words[0]}
	}
	for _, word := range words[3:] {
		if word == "mps" {
			p.MPS = true
		} else {
			p.Command = word
		}
	}
	return p
}

func numberOf(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func periodOf(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func bytesOf(t *testing.T, text string) int64 {
	t.Helper()
	f, err := strconv.ParseFloat(strings.TrimSuffix(text, "Gi"), 64)
	if err != nil {
		t.Fatalf("%q is no size in Gi: %v", text, err)
	}
	return int64(math.Round(f * (1 << 30)))
}
