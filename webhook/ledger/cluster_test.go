package ledger

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOutcomeIsKnownOnlyWhereTheAPIServerSaidIt(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	for name, c := range map[string]struct{ err, want error }{
		"not there":          {apierrors.NewNotFound(kind, "a"), ErrNotFound},
		"there already":      {apierrors.NewAlreadyExists(kind, "a"), ErrExists},
		"changed":            {apierrors.NewConflict(kind, "a", errors.New("changed")), ErrConflict},
		"forbidden":          {apierrors.NewForbidden(kind, "a", errors.New("no")), ErrRefused},
		"too large":          {apierrors.NewRequestEntityTooLargeError("a"), ErrRefused},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), ErrUnknown},
		"timed out":          {apierrors.NewTimeoutError("a", 1), ErrUnknown},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), ErrUnknown},
		"the caller gave up": {context.DeadlineExceeded, ErrUnknown},
	} {
		if got := outcome(c.err); !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%s: %v, want it to be %v", name, got, c.want)
		}
	}
	if outcome(nil) != nil {
		t.Error("nothing went wrong, and yet")
	}
}
