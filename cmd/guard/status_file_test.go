package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/proc"
)

func statusFileIn(t *testing.T) (*statusFile, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := openStatusFile(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f, path
}

func TestStatusFileRoundTrip(t *testing.T) {
	t.Parallel()
	f, path := statusFileIn(t)
	want := probeStatus{SampledAt: time.Hour, NotEnforcing: "the driver\ndoes not answer", StuckFrom: 2 * time.Hour,
		Pending: []string{"one", "two\n{}"}, Dropped: 3, Returned: true}
	if err := f.update(func(s *probeStatus) { *s = want }); err != nil {
		t.Fatal(err)
	}
	var got probeStatus
	if err := f.update(func(s *probeStatus) { got = *s; s.Pending = nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "two") || strings.Count(string(text), "{") != 1 {
		t.Errorf("of a longer text something is left: %q, %v", text, err)
	}
}

func TestStatusFileLocked(t *testing.T) {
	t.Parallel()
	f, path := statusFileIn(t)
	other, err := openStatusFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if err := syscall.Flock(int(other.file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := f.update(func(*probeStatus) { t.Error("changed a locked file") }); !errors.Is(err, errLocked) {
		t.Errorf("got %v", err)
	}
	p := &publisher{file: f, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	p.enqueue("kept")
	if err := syscall.Flock(int(other.file.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	p.observe(guard.State{})
	if got := p.unreported(); got != "kept" {
		t.Errorf("the message that could not be written is %q", got)
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	t.Run("keeps what a probe changed", func(t *testing.T) {
		t.Parallel()
		f, path := statusFileIn(t)
		p := &publisher{file: f, longest: time.Second, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		probeFile, err := openStatusFile(path)
		if err != nil {
			t.Fatal(err)
		}
		defer probeFile.close()
		ask := func(now time.Duration) (a answer) {
			if err := probeFile.awaitUpdate(func(s *probeStatus) { a = s.answer(livenessProbe, now) }); err != nil {
				t.Fatal(err)
			}
			return a
		}
		p.observe(guard.State{})
		now := proc.SinceBoot()
		var got []string
		for _, message := range []string{"one", "", "two", "", ""} {
			if message != "" {
				p.enqueue(message)
			}
			p.observe(guard.State{})
			got = append(got, ask(now).Text)
		}
		if want := []string{"one", "ok", "two", "ok", "ok"}; !slices.Equal(got, want) {
			t.Errorf("probes got %q, want %q", got, want)
		}
		p.observe(guard.State{InProgress: &guard.Order{}})
		if a := ask(now + 5*time.Second); a.OK {
			t.Error("healthy while a termination hangs")
		}
		p.observe(guard.State{})
		if a := ask(now + 5*time.Second); !a.OK {
			t.Errorf("got %+v after the termination", a)
		}
	})
	t.Run("writes rarely", func(t *testing.T) {
		t.Parallel()
		f, path := statusFileIn(t)
		p := &publisher{file: f, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		p.observe(guard.State{})
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			p.observe(guard.State{})
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("written again with nothing new: %q, %v", after, err)
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Add("")
	f.Add("a\n{\"pending\":[\"a\"],\"sampledAt\":7}\n")
	f.Add("{}\n{\"pending\":null,\"dropped\":-9")
	f.Fuzz(func(t *testing.T, text string) {
		s := parseStatus(text)
		for _, p := range []probe{startupProbe, livenessProbe, readinessProbe, statusProbe} {
			s.answer(p, time.Hour)
		}
		again := parseStatus(formatStatus(s))
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty()); diff != "" &&
			!strings.ContainsRune(text, '\\') && strings.ToValidUTF8(text, "") == text {
			t.Errorf("read %+v again as %+v", s, again)
		}
	})
}
