package proc

import (
	"strconv"
	"sync"
	"time"
)

const (
	// mostThreads bounds the search for a thread that lives: a tenant may keep as many
	// that have exited as it likes, by tracing them.
	mostThreads = 4096
	// fewThreads are searched each time.
	fewThreads = 64
	// mostSearches is how many results are kept.
	mostSearches = 4096
	// searchAgain is how long a search that found nothing is not repeated.
	searchAgain = 5 * time.Second
)

// threads finds threads that live in processes whose first thread has exited, about
// which the kernel reports nothing more. It is safe for concurrent use.
type threads struct {
	source   Source
	mu       sync.Mutex
	searches map[int]search // by PID
}

// search is the result for one process.
type search struct {
	start  uint64
	dir    string // of a thread that lived; empty: none was found
	unread bool   // and there are more
	at     time.Time
}

// living returns where a process can be read whose first thread has exited; empty:
// no thread of it lives, or, unread, it has too many to find out.
func (t *threads) living(s stat) (dir string, unread bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last, known := t.searches[s.pid]
	switch known = known && last.start == s.start; {
	// A search reads the state of every thread, of which a tenant may make thousands.
	case known && last.dir == "" && time.Since(last.at) < searchAgain:
		return "", last.unread
	// The thread that lived may have exited since.
	case known && last.dir != "" && t.lives(last.dir):
		return last.dir, false
	}
	found, searched := t.search(s)
	if searched > fewThreads {
		t.keep(s.pid, found)
	}
	return found.dir, found.unread
}

func (t *threads) search(s stat) (found search, searched int) {
	found = search{start: s.start, at: time.Now()}
	for tid := range t.source.Threads(s.pid) {
		if searched++; searched > mostThreads {
			found.unread = true
			break
		}
		if dir := strconv.Itoa(s.pid) + "/task/" + strconv.Itoa(tid); tid != s.pid && t.lives(dir) {
			found.dir = dir
			break
		}
	}
	return found, searched
}

func (t *threads) lives(dir string) bool {
	s, err := readStat(t.source, dir)
	return err == nil && !s.ended()
}

func (t *threads) keep(pid int, found search) {
	if len(t.searches) >= mostSearches || t.searches == nil {
		t.searches = map[int]search{}
	}
	t.searches[pid] = found
}
