// Command mutants changes one operator, boolean or loop of a package at a time, runs tests, and lists the changes that no test noticed.
//
//	go run -trimpath ./test/mutants [-n 40] [-skip 0] [-seed 1] [-timeout 5m] guard policies/quota=policies ...
//
// After = stand packages whose tests run, too, where those of the mutant's own package pass; they are separated by commas.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// options are what is run of each package.
type options struct {
	most    int    // mutants of a package, chosen at random; 0: all
	skip    int    // the first of these that are left out
	seed    uint64 // of the choice
	timeout time.Duration
	out     io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.most, "n", 40, "try at most this many mutants of each package, chosen at random; 0 tries all")
	flag.IntVar(&o.skip, "skip", 0, "leave out the first of these: go on after a run with -n as many")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the choice")
	flag.DurationVar(&o.timeout, "timeout", 5*time.Minute, "longest run of one package's tests; a mutant whose tests take longer is killed")
	flag.Parse()
	for _, arg := range flag.Args() {
		folder, more, _ := strings.Cut(arg, "=")
		tests := append([]string{folder}, strings.FieldsFunc(more, func(r rune) bool { return r == ',' })...)
		for i := range tests {
			tests[i] = "./" + filepath.Clean(tests[i])
		}
		if err := o.try(context.Background(), filepath.Clean(folder), tests); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// try runs the tests beside each mutant of one package, and prints those that lived, and a row of a table.
func (o options) try(ctx context.Context, folder string, tests []string) error {
	all, err := o.choose(folder)
	if err != nil {
		return err
	}
	// Tests that fail by themselves would kill every mutant.
	if became, out, err := o.test(ctx, tests); err != nil {
		return err
	} else if became != lived {
		return fmt.Errorf("run tests without a mutant: they fail, fix them first:\n%s", out)
	}
	counts := map[outcome]int{}
	for _, m := range all {
		became, err := o.run(ctx, tests, m)
		if err != nil {
			return err
		}
		if counts[became]++; became == lived {
			fmt.Fprintln(o.out, "lived:", m)
		}
	}
	fmt.Fprintf(o.out, "| %s | %d | %d | %d | %d |\n", folder, len(all), counts[killed], counts[lived], counts[notCompiled])
	return nil
}

// choose returns some mutants of the files of a package, in the order of files and lines.
func (o options) choose(folder string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find mutants: %s has no Go files; name the folder of a package", folder)
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("find mutants: %w", err)
		}
		of, err := mutantsOf(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	chosen := rand.New(rand.NewPCG(o.seed, 0)).Perm(len(all))
	if o.most > 0 {
		chosen = chosen[:min(o.most, len(chosen))]
	}
	chosen = chosen[min(max(o.skip, 0), len(chosen)):]
	slices.Sort(chosen)
	some := make([]mutant, 0, len(chosen))
	for _, i := range chosen {
		some = append(some, all[i])
	}
	return some, nil
}

// outcome is what became of a mutant.
type outcome int

const (
	killed      outcome = iota // a test failed, or took too long
	lived                      // no test noticed
	notCompiled                // the change is no Go program
)

// run runs the tests beside a mutant. The source stays as it is: go test reads an overlay.
func (o options) run(ctx context.Context, tests []string, m mutant) (outcome, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return 0, fmt.Errorf("read source of mutant: %w", err)
	}
	temporary, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return 0, fmt.Errorf("write mutant: %w", err)
	}
	defer os.RemoveAll(temporary)
	changed, overlay := filepath.Join(temporary, "mutant.go"), filepath.Join(temporary, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: changed}})
	if err := errors.Join(err, os.WriteFile(changed, m.apply(source), 0o600), os.WriteFile(overlay, text, 0o600)); err != nil {
		return 0, fmt.Errorf("write mutant: %w", err)
	}
	became, _, err := o.test(ctx, tests, "-overlay", overlay)
	return became, err
}

// test runs the tests of one package after the other, until one fails.
func (o options) test(ctx context.Context, tests []string, flags ...string) (outcome, []byte, error) {
	flags = append([]string{"test", "-trimpath", "-vet=off", "-failfast", "-timeout", o.timeout.String()}, flags...)
	for _, tests := range tests {
		out, err := exec.CommandContext(ctx, "go", append(flags, tests)...).CombinedOutput()
		switch {
		case strings.Contains(string(out), "[build failed]"):
			return notCompiled, out, nil
		case err != nil && !errors.As(err, new(*exec.ExitError)):
			return 0, nil, fmt.Errorf("run go test: %w", err)
		case err != nil:
			return killed, out, nil
		}
	}
	return lived, nil, nil
}
