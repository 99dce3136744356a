package cli

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPainter(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("needs a pseudoterminal: %v", err)
	}
	defer terminal.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name       string
		out        io.Writer
		key, value string
		colours    bool
	}{
		{"a terminal", terminal, "", "", true},
		{"a terminal whose user wants no colours", terminal, "NO_COLOR", "1", false},
		{"a terminal without colours", terminal, "TERM", "dumb", false},
		{"a device", null, "", "", false},
		{"a file", file, "", "", false},
		{"a buffer", &bytes.Buffer{}, "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Streams{Out: c.out, Getenv: func(k string) string { return map[string]string{c.key: c.value}[k] }}
			if got := s.Painter()(Red, "x") != "x"; got != c.colours {
				t.Errorf("colours: %t, want %t", got, c.colours)
			}
		})
	}
}

func TestPaintDiff(t *testing.T) {
	got := PaintDiff("--- x\n+++ y\n@@ -1 +1 @@\n-a\n+b\n c\n", paint)
	want := "\x1b[1m--- x\x1b[0m\n\x1b[1m+++ y\x1b[0m\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
