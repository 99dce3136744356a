package leader

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// TestWriterFailures: objects that cannot be written keep no other from it, and are logged once until all are written.
func TestWriterFailures(t *testing.T) {
	t.Parallel()
	logged, denied, written := 0, true, map[string]int{}
	w := Writer[string]{Log: funcr.New(func(string, string) { logged++ }, funcr.Options{}),
		Differ: func() (map[string]string, error) { return map[string]string{"a": "1", "b": "2", "c": "3"}, nil },
		Write: func(_ context.Context, name, _ string) error {
			if denied && name != "c" {
				return errors.New("denied")
			}
			written[name]++
			return nil
		}}
	for _, step := range []struct {
		denied            bool
		logged, writtenOf int
	}{{true, 1, 0}, {true, 1, 0}, {false, 1, 1}, {true, 2, 1}} {
		denied = step.denied
		w.Sync(t.Context())
		if logged != step.logged || written["a"] != step.writtenOf || written["b"] != step.writtenOf {
			t.Errorf("%+v: %d logged, written: %v", step, logged, written)
		}
	}
	if written["c"] != 4 {
		t.Errorf("c was written %d times", written["c"])
	}
}
