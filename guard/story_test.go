package guard

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpuslice/gpuslice/guard/limits"
)

// A story is a file of testdata with three sections, after a text that says
// what it shows.
//
// limits: "container NAME SLICE [LIMIT]", then "gpus N" where it has more than
// one, or "SETTING VALUE" on defaults.
// samples: lines that begin with a time; those of one time are one sample.
//
//	2s gpu0 10Gi/80Gi: trainer 214 python 7.5Gi; - 99 ? 1Gi
//	2s gpu0 10Gi/80Gi fault TEXT      2s gpu0 10Gi/80Gi old      2s fault TEXT
//	2s terminated | 2s denied REASON  what came of the termination in progress
//
// A process outside the pod is in "-", one of an unnamed container in "?"; flags after its size are mps and
// protected; the size "?" is a figure that the driver does not give. A list
// that is "old" is the one of the sample before.
// want: every event, then the order, as "TIME KIND: MESSAGE".
//
// Run with -update to write the want sections anew; the difference is the
// change in behaviour.
var update = flag.Bool("update", false, "write the want sections of the stories anew")

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
			if err != nil {
				t.Fatal(err)
			}
			got := story(t, section(t, archive, "limits"), section(t, archive, "samples"))
			if *update {
				rewrite(t, file, archive, got)
				return
			}
			if diff := cmp.Diff(section(t, archive, "want"), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func section(t *testing.T, a *txtar.Archive, name string) string {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	t.Fatalf("the story has no section %q", name)
	return ""
}

func rewrite(t *testing.T, file string, a *txtar.Archive, want string) {
	t.Helper()
	for i := range a.Files {
		if a.Files[i].Name == "want" {
			a.Files[i].Data = []byte(want)
		}
	}
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// story runs a story and returns its events and orders as text.
func story(t *testing.T, limitsText, samplesText string) string {
	t.Helper()
	l := parseLimits(t, limitsText)
	var (
		text  strings.Builder
		state State
	)
	for _, s := range parseSamples(t, samplesText) {
		if s.Outcome != nil && state.InProgress != nil {
			s.Outcome.Order = *state.InProgress
		}
		var order *Order
		var events []Event
		state, order, events = Step(state, s, l)
		for _, e := range events {
			fmt.Fprintf(&text, "%s %s: %s\n", s.Taken.Sub(epoch), e.Kind, e.Message())
		}
		if order != nil {
			fmt.Fprintf(&text, "%s %s: %s\n", s.Taken.Sub(epoch), order.Kind, order.Message())
		}
	}
	return text.String()
}

func parseLimits(t *testing.T, text string) limits.Limits {
	t.Helper()
	l := limits.Default()
	for line := range lines(text) {
		words := strings.Fields(line)
		var err error
		switch words[0] {
		case "container":
			c := limits.Container{Name: words[1], SliceBytes: bytesOf(t, words[2]), LimitBytes: bytesOf(t, words[len(words)-1]), GPUs: 1}
			l.Containers = append(l.Containers, c)
		case "gpus": // of the container before
			l.Containers[len(l.Containers)-1].GPUs, err = strconv.Atoi(words[1])
		case "act":
			l.Act = limits.Act(words[1])
		case "terminate":
			l.Escalation = limits.Escalation(words[1])
		case "dry-run":
			l.DryRun = true
		case "max-terminations":
			l.MaxTerminations, err = strconv.Atoi(words[1])
		case "grace":
			l.Grace, err = time.ParseDuration(words[1])
		case "settle":
			l.Settle, err = time.ParseDuration(words[1])
		default:
			t.Fatalf("limits: unknown setting in %q", line)
		}
		if err != nil {
			t.Fatalf("limits: %q: %v", line, err)
		}
	}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	return l
}

func parseSamples(t *testing.T, text string) []Sample {
	t.Helper()
	var samples []Sample
	listed := map[string]Device{}
	for line := range lines(text) {
		at, rest, _ := strings.Cut(line, " ")
		after, err := time.ParseDuration(at)
		if err != nil {
			t.Fatalf("samples: %q does not begin with a time: %v", line, err)
		}
		taken := epoch.Add(after)
		if len(samples) == 0 || !samples[len(samples)-1].Taken.Equal(taken) {
			samples = append(samples, Sample{Taken: taken})
		}
		s := &samples[len(samples)-1]
		word, more, _ := strings.Cut(strings.TrimSpace(rest), " ")
		switch word {
		case "fault":
			s.Fault = more
		case "terminated", "gone", "dry-run", "skipped", "denied", "timed-out":
			s.Outcome = &Outcome{Result: Result(word), Reason: more, At: taken.Add(-time.Millisecond)}
		default:
			d := parseDevice(t, word, more, listed[word])
			if !d.Listed.IsZero() {
				s.Devices = append(s.Devices, d)
				continue
			}
			d.Listed = taken
			listed[word] = d
			s.Devices = append(s.Devices, d)
		}
	}
	return samples
}

func parseDevice(t *testing.T, id, text string, last Device) Device {
	t.Helper()
	head, list, _ := strings.Cut(text, ":")
	if strings.Contains(text, " fault ") {
		head = text
	}
	sizes, fault, _ := strings.Cut(head, " ")
	used, total, found := strings.Cut(sizes, "/")
	if !found {
		t.Fatalf("samples: %q: no USED/TOTAL", text)
	}
	d := Device{ID: id, UsedBytes: bytesOf(t, used), TotalBytes: bytesOf(t, total)}
	if fault == "old" {
		d.Listed, d.Processes = last.Listed, last.Processes
		return d
	}
	if fault != "" {
		d.Fault = strings.TrimPrefix(fault, "fault ")
		return d
	}
	for text := range strings.SplitSeq(list, ";") {
		if words := strings.Fields(text); len(words) > 0 {
			d.Processes = append(d.Processes, parseProcess(t, words))
		}
	}
	return d
}

func parseProcess(t *testing.T, words []string) Process {
	t.Helper()
	if len(words) < 4 {
		t.Fatalf("samples: %q is no CONTAINER PID COMMAND SIZE", words)
	}
	pid, err := strconv.Atoi(words[1])
	if err != nil {
		t.Fatal(err)
	}
	p := Process{PID: pid, Start: uint64(pid), Container: strings.Trim(words[0], "-?"), Command: words[2], Known: words[3] != "?"}
	if words[0] == "-" {
		p.Start = 0
	}
	if words[0] == "?" {
		p.Container = UnnamedContainer
	}
	if words[0] == "gpuslice-guard" {
		p.Container = words[0]
	}
	if p.Known {
		p.UsedBytes = bytesOf(t, words[3])
	}
	for _, option := range words[4:] {
		p.MPS = p.MPS || option == "mps"
		p.Protected = p.Protected || option == "protected"
	}
	return p
}

func bytesOf(t *testing.T, text string) int64 {
	t.Helper()
	for unit, factor := range map[string]float64{"Gi": 1 << 30, "Mi": 1 << 20} {
		if number, found := strings.CutSuffix(text, unit); found {
			f, err := strconv.ParseFloat(number, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(math.Round(f * factor))
		}
	}
	if text != "0" {
		t.Fatalf("%q is no size in Gi or Mi", text)
	}
	return 0
}

func lines(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}
