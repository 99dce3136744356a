package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

func reservation(uid string) ledger.Reservation {
	return ledger.Reservation{PodUID: uid, Name: "pod-" + uid, NamespaceUID: "ns-1", CreatedAt: time.UnixMilli(1_700_000_000_123).UTC(),
		Holding: quota.Holding{Namespace: "team-a", Pools: []string{"a100"}, Charge: quota.Charge{Memory: 8192, Slices: 1},
			Classes: map[string]quota.Charge{"small": {Memory: 8192, Slices: 1}},
			Units:   map[string]int64{api.ResourceGPU: 1}, Traits: quota.Traits{PriorityClass: "batch"}}}
}

func TestEncode(t *testing.T) {
	t.Run("decodes to the same state", func(t *testing.T) {
		s := ledger.State{
			Base: []quota.Holding{
				{Namespace: "team-a", Charge: quota.Charge{Memory: 1 << 30, Slices: 1 << 40, GPUs: 3}, MemoryUnknown: true},
			},
			Namespaces:   []string{"team-a"},
			Reservations: []ledger.Reservation{reservation("1"), reservation("2")},
			NotBefore:    time.UnixMilli(1_700_000_060_000).UTC(),
		}
		data, err := ledger.Encode(teamA, s)
		if err != nil {
			t.Fatal(err)
		}
		key, again, err := ledger.Decode(data)
		if err != nil || key != teamA {
			t.Fatalf("key %q, %v", key, err)
		}
		if diff := cmp.Diff(s, again); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("rejects what cannot be stored", func(t *testing.T) {
		var s ledger.State
		for i := range 3000 {
			s.Reservations = append(s.Reservations, reservation(fmt.Sprint(i)))
		}
		if _, err := ledger.Encode(teamA, s); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v", err)
		}
		s = ledger.State{Namespaces: []string{strings.Repeat("a", 1<<20)}}
		if _, err := ledger.Encode(teamA, s); !errors.Is(err, ledger.ErrFull) {
			t.Errorf("%v", err)
		}
	})
}

func TestDecode(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"nothing":         {"", "EOF"},
		"another version": {`{"version":2,"budget":"a"}`, "version 2"},
		"two documents":   {`{"version":1,"budget":"a"}{}`, "trailing data"},
		"a negative base": {`{"version":1,"budget":"a","base":[{"namespace":"a","charge":{"slices":-5}}]}`, "negative or overflowing"},
		"an overflowing base": {`{"version":1,"budget":"a","base":[{"namespace":"a","charge":{"gpus":9223372036854775807}}]}`,
			"negative or overflowing"},
		"a negative class": {`{"version":1,"budget":"a","base":[{"namespace":"a","classes":{"small":{"slices":-1}}}]}`,
			"negative or overflowing"},
		"a negative pod": {`{"version":1,"budget":"a","reservations":[{"podUID":"1","holding":{"namespace":"a","charge":{"slices":-1}}}]}`,
			"negative or overflowing"},
		"a pod without UID": {`{"version":1,"budget":"a","reservations":[{"holding":{"namespace":"a"}}]}`, "without a UID"},
		"negative units":    {`{"version":1,"budget":"a","base":[{"namespace":"a","units":{"nvidia.com/gpu":-1}}]}`, "negative or overflowing"},
		"negative memory":   {`{"version":1,"budget":"a","base":[{"namespace":"a","charge":{"memory":"-5Gi"}}]}`, "not an amount"},
		"too much":          {strings.Repeat(" ", 1<<20), "longer than"},
	} {
		if _, _, err := ledger.Decode([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
	largest := `{"version":1,"budget":"a"}`
	largest += strings.Repeat(" ", 900<<10-len(largest))
	if _, _, err := ledger.Decode([]byte(largest)); err != nil {
		t.Errorf("the largest ledger: %v", err)
	}
	if _, _, err := ledger.Decode([]byte(largest + " ")); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("one byte more: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := ledger.Encode(teamA, ledger.State{Namespaces: []string{"team-a"}, Reservations: []ledger.Reservation{reservation("1")},
		Base: []quota.Holding{reservation("2").Holding}, NotBefore: time.UnixMilli(1_700_000_060_000).UTC()})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(data), `{"version":1}`, `{"version":1,"base":[{"charge":{"memory":"1e400"}}]}`,
		`{"version":1,"reservations":[{"podUID":"1","createdAt":"9999-12-31T23:59:59Z"}]}`, `null`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		key, s, err := ledger.Decode(data)
		if err != nil {
			return
		}
		used := s.Used(quota.Scope{})
		if used.Memory < 0 || used.Slices < 0 || used.GPUs < 0 {
			t.Fatalf("used %+v", used)
		}
		printed, err := ledger.Encode(key, s)
		if errors.Is(err, ledger.ErrFull) || err != nil && strings.Contains(err.Error(), "year outside of range") {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, same, err := ledger.Decode(printed)
		if err != nil || again != key {
			t.Fatalf("printed %s: %v", printed, err)
		}
		twice, err := ledger.Encode(again, same)
		if err != nil || string(twice) != string(printed) {
			t.Errorf("printed %s, then %s (%v)", printed, twice, err)
		}
	})
}
