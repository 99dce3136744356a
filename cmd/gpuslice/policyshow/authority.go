package policyshow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// errUnknown is why the policy of a namespace is not known.
var errUnknown = errors.New("unknown: a policy cannot be used")

// authority is the policy that governs the namespace, nil: none does. In a cluster it is the policy of a replica's
// decisions, which keeps last good versions and the namespaces of invalid policies.
func (d *documents) authority() (*config.Policy, error) {
	if d.source == fromFiles {
		if d.anyBroken() {
			return nil, errUnknown
		}
		return config.NewBook(manifest.Governing(d.policies)).For(manifest.Namespace(d.namespace, d.labels)) // the error names the policies
	}
	if d.stateUnread != nil && d.anyBroken() {
		return nil, fmt.Errorf("%w, and its last good version may not be read: %w", errUnknown, d.stateUnread)
	}
	snapshot := cluster.ReadSnapshot(cluster.Objects{Policies: d.maps, State: d.state})
	in := snapshot.AuthorityInput(manifest.Namespace(d.namespace, d.labels))
	if in.PolicyError != nil && d.anyBroken() {
		return nil, errUnknown
	}
	return in.Policy, in.PolicyError
}

func (d *documents) anyBroken() bool {
	return slices.ContainsFunc(d.policies, func(p manifest.Policy) bool { return len(p.Problems) > 0 })
}

// inForce is a policy as it stands, or its last good version.
func (d *documents) inForce(i int) *manifest.Policy {
	p := d.policies[i]
	if _, name, _ := strings.Cut(p.Name, "/"); len(p.Problems) > 0 {
		p.Text = []byte(cluster.LastGood(d.state)[name].Text)
	}
	return &p
}
