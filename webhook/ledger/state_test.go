package ledger_test

import (
	"reflect"
	"testing"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// TestWithNewerParts is about a list of two namespaces of which one part of the ledger is newer, since a watch has shown it.
func TestWithNewerParts(t *testing.T) {
	in := func(namespace string, slices int64) quota.Holding {
		return quota.Holding{Namespace: namespace, Charge: quota.Charge{Slices: slices}}
	}
	reserved := func(uid, namespace string) ledger.Reservation {
		return ledger.Reservation{PodUID: uid, Name: uid, Holding: in(namespace, 1)}
	}
	s := ledger.State{
		Base: []quota.Holding{in("a", 5), in("b", 1)}, Namespaces: []string{"a", "b"}, Revisions: map[string]uint64{"a": 20, "b": 10},
		Reservations: []ledger.Reservation{reserved("listed", "a"), reserved("unlisted", "a"), reserved("new", "b")},
	}
	list := ledger.Listing{
		Namespaces: []ledger.Namespace{{Name: "b", Revision: 15}, {Name: "a", Revision: 15}},
		Pods:       []ledger.Pod{{UID: "listed", Holding: in("a", 1)}, {UID: "new", Holding: in("b", 1)}, {UID: "other", Holding: in("b", 2)}},
	}
	want := ledger.State{
		Base: []quota.Holding{in("a", 5), in("b", 3)}, Namespaces: []string{"a", "b"}, Revisions: map[string]uint64{"a": 20, "b": 15},
		Reservations: []ledger.Reservation{reserved("unlisted", "a")},
	}
	if !s.HasRevisions([]string{"a", "b"}) {
		t.Error("they cannot be compared")
	}
	if got := s.WithNewerParts(list); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
