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

	failing bool // a write of the last sync failed
}

// Run writes until ctx is done.
func (w *Writer[T]) Run(ctx context.Context) error {
	Every(ctx, w.Period, w.Sync)
	return nil
}

// Sync compares once. The first failed write is logged, until a Sync has none; the next Sync repeats all that failed. A write over
// an object that is gone, or that somebody changed meanwhile, is no failure.
func (w *Writer[T]) Sync(ctx context.Context) {
	differ, err := w.Differ()
	if err != nil {
		return
	}
	failures := 0
	for name, want := range differ {
		err := w.writeOne(ctx, name, want)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			continue
		}
		if failures++; failures == 1 && !w.failing {
			w.Log.Error(err, w.Failed, "object", w.Kind+" "+name, "want", want)
		}
		if failures == w.MaxFailures {
			break
		}
	}
	w.failing = failures > 0
}

func (w *Writer[T]) writeOne(ctx context.Context, name string, want T) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return w.Write(ctx, name, want)
}
