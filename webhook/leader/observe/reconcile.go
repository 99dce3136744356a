package observe

import (
	"context"
	"fmt"
	"runtime/debug"
)

// reconcile observes one pod: it gathers facts, judges them, and reports the changes. A panic is an error like others:
// an odd pod must not stop the webhook that serves in the same process.
func (s *session) reconcile(ctx context.Context, key string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	f, err := s.gather(ctx, key)
	if err != nil {
		return err
	}
	if f == nil {
		s.forget(key)
		return nil
	}
	return s.report(ctx, f, judge(f))
}
