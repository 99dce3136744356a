package main

import (
	"fmt"
	"slices"
	"strings"
)

// contextLines stand around each change of a unified diff.
const contextLines = 3

// edit is one line of a comparison: kept (' '), removed ('-') or added ('+').
type edit struct {
	op   byte
	line string
}

// unified compares two texts line by line, as diff -u prints it; "" where they are equal.
func unified(nameBefore, nameAfter, before, after string) string {
	edits := compare(lines(before), lines(after))
	hunks := hunksOf(edits)
	if len(hunks) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", nameBefore, nameAfter)
	atBefore, atAfter, done := 0, 0, 0
	for _, h := range hunks {
		skipped := h.first - done
		atBefore, atAfter, done = atBefore+skipped, atAfter+skipped, h.end
		nBefore, nAfter := count(edits[h.first:h.end], '-'), count(edits[h.first:h.end], '+')
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(atBefore, nBefore), span(atAfter, nAfter))
		for _, e := range edits[h.first:h.end] {
			fmt.Fprintf(&b, "%c%s\n", e.op, e.line)
		}
		atBefore, atAfter = atBefore+nBefore, atAfter+nAfter
	}
	return b.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// hunk is a run of edits that are printed together.
type hunk struct{ first, end int }

// hunksOf gathers changes whose contexts touch.
func hunksOf(edits []edit) []hunk {
	var all []hunk
	for i, e := range edits {
		if e.op == ' ' {
			continue
		}
		next := hunk{max(0, i-contextLines), min(len(edits), i+contextLines+1)}
		if n := len(all); n > 0 && next.first <= all[n-1].end {
			all[n-1].end = next.end
			continue
		}
		all = append(all, next)
	}
	return all
}

// count counts the lines of one side: those kept, and those with op.
func count(edits []edit, op byte) (n int) {
	for _, e := range edits {
		if e.op == ' ' || e.op == op {
			n++
		}
	}
	return n
}

// span prints the lines from index at on, counted from 1; an empty span names the line before it.
func span(at, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", at)
	case 1:
		return fmt.Sprint(at + 1)
	}
	return fmt.Sprintf("%d,%d", at+1, n)
}

// compare finds a shortest list of edits from a to b (Myers, "An O(ND) Difference Algorithm", 1986).
func compare(a, b []string) []edit {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	tail := 0
	for tail < len(a)-same && tail < len(b)-same && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	edits := make([]edit, 0, len(a)+len(b))
	keep := func(lines []string) {
		for _, line := range lines {
			edits = append(edits, edit{' ', line})
		}
	}
	keep(a[:same])
	edits = append(edits, middle(a[same:len(a)-tail], b[same:len(b)-tail])...)
	keep(a[len(a)-tail:])
	return edits
}

// middle compares texts that differ at both ends. reach[d][k+d] is how far into a the paths with d edits get on
// diagonal k (index in a less index in b).
func middle(a, b []string) []edit {
	var reach [][]int
	for d := 0; ; d++ {
		row := make([]int, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x, _ = step(reach[d-1], d, k)
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			row[k+d] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(append(reach, row), a, b)
			}
		}
		reach = append(reach, row)
	}
}

// step is where the d-th edit of a path on diagonal k leads, given how far paths with one edit less got; added says
// that it adds a line of b.
func step(before []int, d, k int) (x int, added bool) {
	at := func(k int) int { return before[k+d-1] }
	if k == -d || k != d && at(k-1) < at(k+1) {
		return at(k + 1), true
	}
	return at(k-1) + 1, false
}

func walkBack(reach [][]int, a, b []string) []edit {
	var reversed []edit
	x, y := len(a), len(b)
	for d := len(reach) - 1; d >= 0; d-- {
		from, added := 0, false
		if d > 0 {
			from, added = step(reach[d-1], d, x-y)
		}
		for ; x > from; x, y = x-1, y-1 {
			reversed = append(reversed, edit{' ', a[x-1]})
		}
		switch {
		case d == 0:
		case added:
			reversed = append(reversed, edit{'+', b[y-1]})
			y--
		default:
			reversed = append(reversed, edit{'-', a[x-1]})
			x--
		}
	}
	slices.Reverse(reversed)
	return reversed
}
