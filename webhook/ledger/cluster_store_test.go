package ledger

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestClassify(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct{ err, want error }{
		"not there":          {apierrors.NewNotFound(kind, "a"), ErrNotFound},
		"there already":      {apierrors.NewAlreadyExists(kind, "a"), ErrExists},
		"changed":            {apierrors.NewConflict(kind, "a", errors.New("changed")), ErrConflict},
		"forbidden":          {apierrors.NewForbidden(kind, "a", errors.New("no")), ErrRejected},
		"too large":          {apierrors.NewRequestEntityTooLargeError("a"), ErrRejected},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), ErrUnknown},
		"timed out":          {apierrors.NewTimeoutError("a", 1), ErrUnknown},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), ErrUnknown},
		"the caller gave up": {context.DeadlineExceeded, ErrUnknown},
	} {
		if got := classify(c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want it to be %v", name, got, c.want)
		}
	}
	if classify(nil) != nil {
		t.Error("nothing went wrong, and yet")
	}
}
