package leader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// TestWriterFailures: objects that cannot be written keep no other from it, and one is logged when another number fails.
func TestWriterFailures(t *testing.T) {
	t.Parallel()
	logged, denied, written := 0, "", map[string]int{}
	w := Writer[string]{Log: funcr.New(func(string, string) { logged++ }, funcr.Options{}),
		Differ: func() (map[string]string, error) { return map[string]string{"a": "1", "b": "2", "c": "3"}, nil },
		Write: func(_ context.Context, name, _ string) error {
			if strings.Contains(denied, name) {
				return errors.New("denied")
			}
			written[name]++
			return nil
		}}
	for _, step := range []struct {
		denied  string
		logged  int
		written string // how often a, b and c
	}{{"ab", 1, "0 0 1"}, {"ab", 1, "0 0 2"}, {"a", 2, "0 1 3"}, {"", 2, "1 2 4"}, {"ab", 3, "1 2 5"}} {
		denied = step.denied
		w.Sync(t.Context())
		if n := fmt.Sprint(written["a"], written["b"], written["c"]); logged != step.logged || n != step.written {
			t.Errorf("%+v: %d logged, written %s", step, logged, n)
		}
	}
}
