package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

// StateName is the ConfigMap of the system namespace in which replicas keep the state that must survive them: the last
// good version of each policy, and the pools whose nodes are gone.
const StateName = "gpuslice-state"

// Keys of that ConfigMap. A last good policy is readable under its own key, with the ConfigMap's name at the end.
const (
	keyPools    = "pools.json"
	keyVersions = "versions.json"
	keyPolicy   = "policy."
)

// Bounds on the state. One ConfigMap holds 1 MiB.
const (
	maxStatePolicies = 700 << 10 // bytes of all last good documents
	maxPools         = 512
	maxPoolsText     = 256 << 10
)

// GoodPolicy is a version of a policy ConfigMap that could be used.
type GoodPolicy struct {
	Version string // the ConfigMap's resourceVersion
	Text    string
}

// State outlives a replica.
type State struct {
	Policies map[string]GoodPolicy // by the ConfigMap's name
	Pools    []pools.Pool          // derived from nodes, now or earlier
}

// decodeState reads the ConfigMap's data. Unreadable parts are left out: the next write replaces them.
func decodeState(data map[string]string) State {
	var s State
	var versions map[string]string
	_ = json.Unmarshal([]byte(data[keyVersions]), &versions) // unknown versions count as the oldest
	if json.Unmarshal([]byte(data[keyPools]), &s.Pools) != nil {
		s.Pools = nil
	}
	s.Policies = map[string]GoodPolicy{}
	for key, text := range data {
		if name, ok := strings.CutPrefix(key, keyPolicy); ok {
			s.Policies[name] = GoodPolicy{Version: versions[name], Text: text}
		}
	}
	return s
}

// LastGood are the last good versions that a state ConfigMap holds, by the ConfigMap's name; nil: there is none.
func LastGood(saved *corev1.ConfigMap) map[string]GoodPolicy {
	if saved == nil {
		return nil
	}
	return decodeState(saved.Data).Policies
}

// Encode prints s as the ConfigMap's data, always in the same way. An error names the parts that found no room; the
// rest is there.
func (s State) Encode() (map[string]string, error) {
	data, versions, size := map[string]string{}, map[string]string{}, 0
	var left []string
	for _, name := range slices.Sorted(maps.Keys(s.Policies)) {
		good := s.Policies[name]
		if size+len(good.Text) > maxStatePolicies || len(keyPolicy+name) > 253 {
			left = append(left, name)
			continue
		}
		size += len(good.Text)
		data[keyPolicy+name], versions[name] = good.Text, good.Version
	}
	text, err := json.Marshal(versions)
	if err != nil {
		return nil, fmt.Errorf("encode versions: %w", err)
	}
	data[keyVersions] = string(text)
	if text, err = json.Marshal(s.Pools); err != nil {
		return nil, fmt.Errorf("encode pools: %w", err)
	}
	if data[keyPools] = string(text); len(text) > maxPoolsText {
		data[keyPools] = "[]"
		left = append(left, "the pools")
	}
	if len(left) > 0 {
		return data, fmt.Errorf("no room in ConfigMap %s for %s", StateName, shorten.Line(strings.Join(left, ", "), review.MaxWarning))
	}
	return data, nil
}

// Newest joins the last good policies of two states; of each policy the newer version stays.
func Newest(a, b map[string]GoodPolicy) map[string]GoodPolicy {
	out := map[string]GoodPolicy{}
	maps.Copy(out, a)
	for name, theirs := range b {
		if ours, ok := out[name]; !ok || newer(theirs.Version, ours.Version) {
			out[name] = theirs
		}
	}
	return out
}

// advance brings last good policies up to date with documents that were read at resourceVersion seen. A version newer
// than the last good one replaces it. A policy without a document was deleted, unless it is newer than seen: then
// another replica has seen more than this one.
func advance(good map[string]GoodPolicy, documents []document, seen string) map[string]GoodPolicy {
	out, present := maps.Clone(good), map[string]bool{}
	for _, d := range documents {
		present[d.object] = true
		last, ok := out[d.object]
		if d.err == nil && (!ok || last.Text != d.text && newer(d.version, last.Version)) {
			out[d.object] = GoodPolicy{Version: d.version, Text: d.text}
		}
	}
	maps.DeleteFunc(out, func(name string, p GoodPolicy) bool { return !present[name] && !newer(p.Version, seen) })
	return out
}

// newer reports whether resourceVersion a is later than b. A text that is no version counts as the oldest.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		_, err = resourceversion.CompareResourceVersion(a, "1")
		return err == nil
	}
	return order > 0
}

// State is what must survive the replica: the last good policies after those in good, as of documents that were read at resourceVersion
// seen, and the pools that no policy declares.
func (s *Snapshot) State(good map[string]GoodPolicy, seen string) State {
	kept := slices.DeleteFunc(slices.Clone(s.pools), func(p pools.Pool) bool { return p.Declared })
	return State{Policies: advance(good, s.documents, seen), Pools: kept[:min(len(kept), maxPools)]}
}
