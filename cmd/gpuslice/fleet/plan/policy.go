package plan

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// addPolicy reads a policy. The default one is changed.
func (o *objects) addPolicy(m *corev1.ConfigMap) error {
	p, problems := config.ParseConfigMap(m, config.Parse)
	if p != nil && p.Namespaces == nil {
		return o.policy.change(m)
	}
	o.governing.Policies = append(o.governing.Policies, m)
	var part struct {
		Namespaces any `json:"namespaces"`
	}
	if p == nil && (yaml.Unmarshal([]byte(m.Data[api.PolicyKey]), &part) != nil || part.Namespaces == nil) {
		o.broken = fmt.Errorf("policy %s/%s cannot be used: %w", m.Namespace, m.Name, problems[0])
	}
	return nil
}

// flowList is a list of strategies on one line of a policy.
var flowList = regexp.MustCompile(`(?m)^strategies:[ \t]*\[[^\]\n]*\][ \t]*$`)

// allow has the policy allow strategies, after those that it allows.
func (o *object) allow(names []api.StrategyName) error {
	text := o.next.Data[o.key]
	if text == "" {
		text = "apiVersion: " + config.APIVersion + "\n"
	}
	p, problems := config.Parse(o.next.Name, []byte(text))
	if p == nil || len(problems) > 0 {
		return fmt.Errorf("read policy %s: %w", o.next.Name, problems.ToAggregate())
	}
	allowed := p.Strategies
	for _, name := range names {
		if !slices.Contains(allowed, name) {
			allowed = append(allowed, name)
		}
	}
	if len(allowed) == len(p.Strategies) {
		return nil
	}
	line := "strategies: [" + cli.Join(allowed) + "]"
	if flowList.MatchString(text) {
		text = flowList.ReplaceAllLiteralString(text, line)
	} else {
		text = strings.TrimSuffix(text, "\n") + "\n" + line + "\n"
	}
	// a list of several lines, or JSON
	if changed, _ := config.Parse(o.next.Name, []byte(text)); changed == nil || !slices.Equal(changed.Strategies, allowed) {
		text = o.next.Data[o.key]
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return fmt.Errorf("read policy %s: %w", o.next.Name, err)
		}
		document["strategies"] = allowed
		rewritten, err := yaml.Marshal(document)
		if err != nil {
			return fmt.Errorf("write policy %s: %w", o.next.Name, err)
		}
		text = string(rewritten)
	}
	o.next.Data[o.key] = text
	return nil
}

// strategies are those that the default policy has to allow: of nodes that change, and of nodes on which pods that it governs share GPUs.
// None where it is unknown which policy that is.
func (o *objects) strategies(f *demand.Fleet, p *proposal.Plan) (names []api.StrategyName) {
	if o.policy.today == nil && o.broken != nil {
		return nil
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Changed && n.Strategy != layout.Exclusive {
			names = append(names, n.Strategy)
		}
	}
	for in, strategy := range o.sharing(f, p) {
		if in.PolicyError == nil && (in.Policy == nil || in.Policy.Namespaces == nil) {
			names = append(names, strategy)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sharing are the pods that share a GPU in a plan: what governs each, and the strategy of its node.
func (o *objects) sharing(f *demand.Fleet, p *proposal.Plan) iter.Seq2[policies.Input, api.StrategyName] {
	snapshot := o.snapshot()
	return func(yield func(policies.Input, api.StrategyName) bool) {
		for i, at := range p.Next.Placed {
			if at < 0 || !f.Pods[i].Part() || p.Next.Forms[at].Strategy == layout.Exclusive {
				continue
			}
			if !yield(snapshot.Input(o.namespace(f.Pods[i].Namespace)), p.Next.Forms[at].Strategy) {
				return
			}
		}
	}
}

// snapshot is what governs pods, with what a plan has changed.
func (o *objects) snapshot() *webhookcluster.Snapshot {
	governing := o.governing
	if o.policy.today != nil {
		governing.Policies = append(slices.Clip(governing.Policies), &o.policy.next)
	}
	return webhookcluster.ReadSnapshot(governing)
}

// namespace is one with the labels that are known.
func (o *objects) namespace(name string) api.Namespace {
	if ns, known := o.namespaces[name]; known {
		return ns
	}
	return manifest.Namespace(name, nil)
}

// notes are on ConfigMaps that nothing reads yet, on the default policy, and on policies that do not allow pods what the plan gives them.
func (o *objects) notes(f *demand.Fleet, p *proposal.Plan) (notes []string) {
	for _, made := range []struct {
		*object
		file, setting string
	}{{&o.plugin, pluginFile, "devicePlugin"}, {&o.mig, migFile, "migManager"}} {
		if made.today == nil && made.changed() {
			notes = append(notes, fmt.Sprintf("%s is a new ConfigMap: create it where NVIDIA's software runs, which reads it once that is configured (GPU Operator: %s.config.name=%s)",
				made.file, made.setting, made.next.Name))
		}
	}
	if len(o.leftOut) > 0 {
		text := o.leftOut[0]
		if more := len(o.leftOut) - 1; more > 0 {
			text += ", " + cli.AndMore(more)
		}
		notes = append(notes, fmt.Sprintf("ConfigMaps of DaemonSets in tenants' namespaces are left out: %s; if one is NVIDIA's, move it to a namespace of its own, or name its ConfigMap with --against", text))
	}
	switch {
	case o.policy.today == nil && o.broken != nil:
		notes = append(notes, fmt.Sprintf("%s is not written, because %v: correct the policy and plan again", policyFile, o.broken))
	case !o.policy.changed():
	case o.policy.today == nil:
		notes = append(notes,
			fmt.Sprintf("%s is a new policy: where there is one named %s, it would replace it and all its limits; --against adds to today's",
				policyFile, o.policy.next.Name))
	default:
		notes = append(notes,
			fmt.Sprintf("%s has policy %s allow more strategies than today, in all namespaces that it governs: see changes.diff",
				policyFile, o.policy.next.Name))
	}
	pods := map[string]int{}
	for in, strategy := range o.sharing(f, p) {
		if in.PolicyError != nil {
			pods[fmt.Sprintf("it is unknown whether a policy allows it, because %v", in.PolicyError)]++
		} else if !in.Policy.Off() && !in.Policy.Allows(strategy) {
			pods[fmt.Sprintf("policy %s does not allow it: add %s to its strategies, or plan without it", in.Policy.Name, strategy)]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(pods)) {
		notes = append(notes, fmt.Sprintf("%d pods have a shared GPU in the plan, and %s", pods[text], text))
	}
	return notes
}
