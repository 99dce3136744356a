package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// built is what all tests share: the fake library and the tenant.
var built struct{ library, tenant string }

// TestMain lets the test binary be the guard, and builds what it runs against.
func TestMain(m *testing.M) {
	if os.Getenv("GPUSLICE_TEST_GUARD") != "" {
		main()
	}
	var err error
	built.library, built.tenant, err = fakegpu.BuildForTests(context.Background())
	if errors.Is(err, fakegpu.ErrNoCompiler) {
		fmt.Println("SKIP: cmd/guard:", err)
		return
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(filepath.Dir(built.tenant))
	os.Exit(status)
}

// environment is the limits of a pod with one container, quick enough for a test.
func environment(change func(*limits.Limits)) []limits.Variable {
	l := limits.Default()
	l.Containers = []limits.Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	l.Interval, l.FastInterval, l.Grace, l.TermGrace = 100*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond, time.Second
	if change != nil {
		change(&l)
	}
	return l.Env()
}

func lookup(vars []limits.Variable) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if v.Name == name {
				return v.Value, true
			}
		}
		return "", false
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"":                   {exitUsage, "Usage:"},
		"--help":             {exitOK, "Examples:"},
		"run --help":         {exitOK, "-dry-run"},
		"status --help":      {exitOK, "-liveness"},
		"--version":          {exitOK, "\n"},
		"dance":              {exitUsage, `unknown command "dance"`},
		"run --fast":         {exitUsage, "flag provided but not defined: -fast"},
		"run now":            {exitUsage, `unexpected argument "now"`},
		"run --log-level so": {exitUsage, "invalid value"},
	} {
		var out bytes.Buffer
		code := command(t.Context(), strings.Fields(args), process{out: &out, err: &out, lookup: lookup(nil)})
		if code != want.code || !strings.Contains(out.String(), want.text) {
			t.Errorf("guard %s: exit %d, want %d; printed %q", args, code, want.code, out.String())
		}
	}
}
