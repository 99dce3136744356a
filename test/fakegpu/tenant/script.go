package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mebibytes is an amount of memory.
type mebibytes int

// step is one thing to do.
type step struct {
	do     string
	amount mebibytes
	to     mebibytes
	count  int
	text   string
	length time.Duration
}

// script is the content of the arguments.
type script struct {
	device, node, kind string
	ignoreTerm         bool
	forkOnTerm         mebibytes
	exitAfter          time.Duration
	steps              []step
}

// parse reads the arguments.
func parse(args []string) (script, error) {
	s := script{kind: "C"}
	r := reader{words: strings.Fields(strings.Join(args, " "))}
	for len(r.words) > 0 && r.err == nil {
		s.take(&r)
	}
	return s, r.err
}

func (s *script) take(r *reader) {
	switch do := r.word(); do {
	case "hold":
		s.add(step{do: do, amount: r.amount()})
	case "grow":
		s.add(step{do: do, amount: r.amount(), to: r.amount(), length: r.duration()})
	case "spike":
		s.add(step{do: do, amount: r.amount(), length: r.duration()})
	case "wait":
		s.add(step{do: do, length: r.duration()})
	case "fork":
		s.add(step{do: do, count: r.count(), amount: r.amount()})
	case "say":
		s.add(step{do: do, text: r.word()})
	case "reexec", "leave", "end-first-thread", "end-threads":
		s.add(step{do: do})
	case "occupy", "threads", "crowd":
		s.add(step{do: do, count: r.count()})
	case "fifo", "chroot", "connect":
		s.add(step{do: do, text: r.word()})
	case "device":
		s.device = r.word()
	case "node":
		s.node = r.word()
	case "kind":
		s.kind = r.word()
	case "ignore-term":
		s.ignoreTerm = true
	case "fork-on-term":
		s.forkOnTerm = r.amount()
	case "exit-after":
		s.exitAfter = r.duration()
	default:
		r.fail(fmt.Errorf("no step is called %q", do))
	}
}

func (s *script) add(next step) { s.steps = append(s.steps, next) }

// arguments are the arguments of this script, from a step on.
func (s *script) arguments(from int) []string {
	args := []string{"device", s.device, "kind", s.kind}
	if s.node != "" {
		args = append(args, "node", s.node)
	}
	if s.ignoreTerm {
		args = append(args, "ignore-term")
	}
	if s.forkOnTerm != 0 {
		args = append(args, "fork-on-term", s.forkOnTerm.String())
	}
	if s.exitAfter != 0 {
		args = append(args, "exit-after", s.exitAfter.String())
	}
	for _, next := range s.steps[from:] {
		args = append(args, next.String())
	}
	return args
}

// String is the step as it is written.
func (t step) String() string {
	switch t.do {
	case "hold":
		return fmt.Sprintf("hold %s", t.amount)
	case "grow":
		return fmt.Sprintf("grow %s %s %s", t.amount, t.to, t.length)
	case "spike":
		return fmt.Sprintf("spike %s %s", t.amount, t.length)
	case "wait":
		return fmt.Sprintf("wait %s", t.length)
	case "fork":
		return fmt.Sprintf("fork %d %s", t.count, t.amount)
	case "occupy", "threads", "crowd":
		return fmt.Sprintf("%s %d", t.do, t.count)
	case "say", "fifo", "chroot", "connect":
		return t.do + " " + t.text
	}
	return t.do
}

// String is the amount as parse reads it.
func (m mebibytes) String() string { return fmt.Sprintf("%dMiB", int(m)) }

// reader takes words; after the first error it gives zero values.
type reader struct {
	words []string
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) word() string {
	if len(r.words) == 0 {
		r.fail(errors.New("a step lacks a word"))
		return ""
	}
	first := r.words[0]
	r.words = r.words[1:]
	return first
}

func (r *reader) count() int {
	n, err := strconv.Atoi(r.word())
	r.fail(err)
	return n
}

func (r *reader) duration() time.Duration {
	d, err := time.ParseDuration(r.word())
	r.fail(err)
	return d
}

// most is the largest number of eight digits.
const most = 99999999

func (r *reader) amount() mebibytes {
	text := r.word()
	digits, unit := strings.TrimSuffix(text, "MiB"), 1
	if digits == text {
		digits, unit = strings.TrimSuffix(text, "GiB"), 1024
	}
	n, err := strconv.Atoi(digits)
	if err != nil || digits == text || n < 0 || n > most/unit {
		r.fail(fmt.Errorf("%q is no amount of whole MiB or GiB", text))
		return 0
	}
	return mebibytes(n * unit)
}
