package leader

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const writeTimeout = 5 * time.Second

// Writer writes objects that differ from what they should be. Run it in one replica at a time.
type Writer[T any] struct {
	Period time.Duration // between two comparisons
	// Differ returns what should be written into the objects that differ, by their names. An error: it is not known yet.
	Differ func() (map[string]T, error)
	Write  func(ctx context.Context, name string, want T) error
	// MaxFailures are the failed writes after which the next ones are left to the next comparison, in another order; 0: any number.
	MaxFailures int
	Kind        string // of the objects
	Failed      string // what a failed write means, for the log
	Log         logr.Logger

	failures int // in the last Sync
}

// Run writes until ctx is done.
func (w *Writer[T]) Run(ctx context.Context) error {
	Every(ctx, w.Period, w.Sync)
	return nil
}

// Sync compares once. The next Sync repeats failed writes. One of them is logged whenever another number fails than before. A write over
// an object that is gone, or that somebody changed meanwhile, is no failure.
func (w *Writer[T]) Sync(ctx context.Context) {
	differ, err := w.Differ()
	if err != nil {
		return
	}
	failures, failed, first := 0, "", error(nil)
	for name, want := range differ {
		err := w.writeOne(ctx, name, want)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			continue
		}
		if failures++; failures == 1 {
			failed, first = name, err
		}
		if failures == w.MaxFailures {
			break
		}
	}
	if failures > 0 && failures != w.failures {
		w.Log.Error(first, w.Failed, "object", w.Kind+" "+failed, "want", differ[failed], "failures", failures)
	}
	w.failures = failures
}

func (w *Writer[T]) writeOne(ctx context.Context, name string, want T) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return w.Write(ctx, name, want)
}
