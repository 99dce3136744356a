package arch

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestModules holds go.mod against the imports: a module is in a program of cmd/, or in the block of tests.
func TestModules(t *testing.T) {
	ships := map[string]bool{}
	for system, programs := range map[string]string{"linux": "/cmd/...", "windows": "/cmd/gpuslice"} {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+programs)
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		for _, path := range strings.Fields(string(out)) {
			ships[path] = true
		}
	}
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range misplaced(string(text), ships) {
		t.Error(problem)
	}
}

// TestModulesFound keeps the check itself honest.
func TestModulesFound(t *testing.T) {
	got := misplaced(`module example.test/m

go 1.26.0

require (
	example.test/ships v1.0.0
	example.test/diff v1.0.0
)

// Tests alone.
require (
	example.test/compare v1.0.0
	example.test/linked v1.0.0
)

require example.test/reached v1.0.0 // indirect
require example.test/unused v1.0.0 // indirect
`, map[string]bool{"example.test/ships": true, "example.test/linked": true, "example.test/reached": true})
	want := []string{
		"go.mod: example.test/diff is in no program: it goes to the block of tests, or away",
		"go.mod: example.test/linked is in a program: it leaves the block of tests",
		"go.mod: example.test/unused is in no program: it goes to the block of tests, or away",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// misplaced says which requirements of a go.mod stand in the wrong block.
func misplaced(text string, ships map[string]bool) (problems []string) {
	tests := false
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		switch {
		case strings.HasPrefix(line, "// Tests alone."):
			tests = true
		case strings.HasPrefix(line, ")"):
			tests = false
		case len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || ships[fields[0]] != tests:
		case tests:
			problems = append(problems, "go.mod: "+fields[0]+" is in a program: it leaves the block of tests")
		default:
			problems = append(problems, "go.mod: "+fields[0]+" is in no program: it goes to the block of tests, or away")
		}
	}
	return problems
}
