// Command table prints the attacks that tests carried out: the outcome of each, its message, and the memory held beyond
// the slice. It fails where an attack of webhook/THREATS.md has no attempt, or an attempt no attack.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gpuslice/gpuslice/test/abuse"
)

const page = "webhook/THREATS.md"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: go run ./test/abuse/table DIRECTORY, with what the tests wrote under %s\n", abuse.Directory)
		os.Exit(2)
	}
	if err := run(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, dir string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	attempts, err := read(dir)
	if err != nil {
		return err
	}
	if err := write(out, attempts); err != nil {
		return err
	}
	return compare(rows(string(text)), attempts)
}

// rows are the threats of the page.
func rows(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^\*\*(A\d+)\. `).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// read returns the attempts in dir, each once, in the order of the page.
func read(dir string) ([]abuse.Attempt, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	var out []abuse.Attempt
	for _, name := range files {
		if out, err = appendFile(out, name); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b abuse.Attempt) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a.Attack, b.Attack), cmp.Compare(a.Words, b.Words))
	})
	return slices.CompactFunc(out, func(a, b abuse.Attempt) bool {
		return a.Threat == b.Threat && a.Attack == b.Attack && a.Words == b.Words
	}), nil
}

func appendFile(out []abuse.Attempt, name string) ([]abuse.Attempt, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var a abuse.Attempt
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, a)
	}
	return out, lines.Err()
}

func number(a abuse.Attempt) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(a.Threat, "A"))
	return n
}

func write(out io.Writer, attempts []abuse.Attempt) error {
	const width = 100
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "THREAT\tATTACK\tOUTCOME\tBEYOND THE SLICE\tTEST\tWORDS")
	for _, a := range attempts {
		words := []rune(strings.Join(strings.Fields(a.Words), " "))
		if len(words) > width {
			words = append(words[:width-3], []rune("...")...)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Threat, a.Attack, a.Outcome, cmp.Or(a.Held, "nothing"), a.Test, string(words))
	}
	return w.Flush()
}

// compare returns an error that names the threats without an attempt, and those of attempts that the page does not have.
func compare(threats []string, attempts []abuse.Attempt) error {
	var unknown []string
	tried := map[string]bool{}
	for _, a := range attempts {
		tried[a.Threat] = true
		if !slices.Contains(threats, a.Threat) {
			unknown = append(unknown, a.Threat+" ("+a.Test+")")
		}
	}
	missing := slices.DeleteFunc(slices.Clone(threats), func(threat string) bool { return tried[threat] })
	if len(missing)+len(unknown) == 0 {
		return nil
	}
	return fmt.Errorf("threats of %s that no test tried: %s; attempts of no attack there: %s", page,
		cmp.Or(strings.Join(missing, ", "), "none"), cmp.Or(strings.Join(unknown, ", "), "none"))
}
