package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
)

func TestAdvance(t *testing.T) {
	t.Parallel()
	old := map[string]GoodPolicy{"a": {"10", "old"}}
	read := func(version, text string, err error) []document {
		return []document{{object: "a", version: version, text: text, err: err}}
	}
	for name, tt := range map[string]struct {
		documents []document
		seen      string
		want      map[string]GoodPolicy
	}{
		"a newer good version replaces":                     {read("11", "new", nil), "11", map[string]GoodPolicy{"a": {"11", "new"}}},
		"an older one does not: another replica saw more":   {read("9", "older", nil), "9", old},
		"the same text is not written again":                {read("11", "old", nil), "11", old},
		"a broken version does not":                         {read("11", "new", errors.New("x")), "11", old},
		"a deleted policy goes":                             {nil, "12", map[string]GoodPolicy{}},
		"one that this replica has not seen yet stays":      {nil, "9", old},
		"versions of different length compare as numbers":   {read("100", "new", nil), "100", map[string]GoodPolicy{"a": {"100", "new"}}},
		"a version that is no number never beats one":       {read("x", "new", nil), "11", old},
		"a deletion is not believed of what saw no version": {nil, "", old},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, advance(old, tt.documents, tt.seen)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(map[string]GoodPolicy{"a": {"10", "old"}, "b": {"3", "y"}},
		Newest(map[string]GoodPolicy{"b": {"3", "y"}}, map[string]GoodPolicy{"a": {"10", "old"}, "b": {"2", "x"}})); diff != "" {
		t.Errorf("Newest (-want +got)\n%s", diff)
	}
}

func TestStateEncode(t *testing.T) {
	t.Run("state is read as it was written", func(t *testing.T) {
		t.Parallel()
		s := State{
			Policies: map[string]GoodPolicy{"a": {"10", "mode: opt-in\n"}, "team.b": {"", "x"}},
			Pools:    []pools.Pool{{Name: "l4", DeviceMemory: 23034, Replicas: 4, Labels: map[string]string{"a": "b"}}},
		}
		data, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got := decodeState(data)
		if diff := cmp.Diff(s.Policies, got.Policies); diff != "" {
			t.Errorf("policies (-want +got)\n%s", diff)
		}
		if diff := cmp.Diff(s.Pools, got.Pools); diff != "" {
			t.Errorf("pools (-want +got)\n%s", diff)
		}
		again, _ := got.Encode()
		if diff := cmp.Diff(data, again); diff != "" {
			t.Errorf("written again (-want +got)\n%s", diff)
		}
	})
	t.Run("state fits into one ConfigMap", func(t *testing.T) {
		t.Parallel()
		s := State{Policies: map[string]GoodPolicy{strings.Repeat("z", 250): {"1", "x"}}}
		for i := range 20 {
			s.Policies[fmt.Sprintf("p%02d", i)] = GoodPolicy{Version: "1", Text: strings.Repeat("x", config.MaxDocument)}
		}
		for i := range maxPools {
			s.Pools = append(s.Pools, pools.Pool{Name: fmt.Sprint(i), Labels: map[string]string{"x": strings.Repeat("y", 1000)}})
		}
		data, err := s.Encode()
		size := 0
		for key, value := range data {
			size += len(key) + len(value)
		}
		if size > 1<<20 || err == nil || !strings.Contains(err.Error(), "p19") || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%d bytes, %v", size, err)
		}
		if data["policy.p00"] == "" {
			t.Error("what fits was left out too")
		}
	})
}

func TestDecodeState(t *testing.T) {
	t.Run("broken state is read as far as possible", func(t *testing.T) {
		t.Parallel()
		got := decodeState(map[string]string{keyPools: "{", keyVersions: "[]", "policy.a": "x", "other": "y"})
		if diff := cmp.Diff(map[string]GoodPolicy{"a": {"", "x"}}, got.Policies); diff != "" || got.Pools != nil {
			t.Errorf("pools %v, policies (-want +got)\n%s", got.Pools, diff)
		}
	})
}
