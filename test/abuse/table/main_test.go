package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/test/abuse"
)

func TestCompare(t *testing.T) {
	page := "**A1. Attack.** What stops it (test).\n\n**A2. Attack.** What stops it (test).\n"
	a1, a2 := abuse.Attempt{Threat: "A1"}, abuse.Attempt{Threat: "A2", Test: "TestA2"}
	t.Run("every attack was tried", func(t *testing.T) {
		if err := compare(rows(page), []abuse.Attempt{a1, a2, a2}); err != nil {
			t.Error(err)
		}
	})
	t.Run("an attack that nobody tried is an error", func(t *testing.T) {
		if err := compare(rows(page), []abuse.Attempt{a1}); err == nil || !strings.Contains(err.Error(), "no test tried: A2;") {
			t.Error(err)
		}
	})
	t.Run("an attempt of no attack is an error", func(t *testing.T) {
		if err := compare([]string{"A1"}, []abuse.Attempt{a1, a2}); err == nil || !strings.Contains(err.Error(), "A2 (TestA2)") {
			t.Error(err)
		}
	})
}

func TestRead(t *testing.T) {
	t.Run("attempts come once, in the order of the page", func(t *testing.T) {
		dir := t.TempDir()
		text := `{"threat":"A10","attack":"b"}` + "\n" + `{"threat":"A9","attack":"a"}` + "\n" + `{"threat":"A9","attack":"a"}` + "\n"
		if err := os.WriteFile(filepath.Join(dir, "1.jsonl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := read(dir)
		if err != nil || len(got) != 2 || got[0].Threat != "A9" || got[1].Threat != "A10" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
