package ledger

import (
	"errors"
	"sync/atomic"
)

// Counts are the calls of a Ledger since it was created.
type Counts struct {
	Requests, Batches, Gets, Writes, Lists int64
	Views                                  int64 // rounds that rest on watches
	Conflicts                              int64 // writes that failed because another replica wrote first
	Unanswered                             int64 // writes without an answer
}

type counters struct {
	requests, batches, gets, writes, lists, views, conflicts, unanswered atomic.Int64
}

func (c *counters) failed(err error) {
	switch {
	case errors.Is(err, ErrUnknown):
		c.unanswered.Add(1)
	case errors.Is(err, ErrConflict), errors.Is(err, ErrExists), errors.Is(err, ErrNotFound):
		c.conflicts.Add(1)
	}
}

// Counts returns the counts so far, for metrics.
func (l *Ledger) Counts() Counts {
	c := &l.counts
	return Counts{
		Requests: c.requests.Load(), Batches: c.batches.Load(), Gets: c.gets.Load(), Writes: c.writes.Load(),
		Lists: c.lists.Load(), Views: c.views.Load(), Conflicts: c.conflicts.Load(), Unanswered: c.unanswered.Load(),
	}
}
