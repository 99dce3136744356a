package doctor

import (
	"fmt"
	"strings"

	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/podedit"
)

// checkPodSecurity checks gpuslice's edits of a well-behaved pod against the rules of its namespace's Pod Security
// level: one finding for each policy and level.
func checkPodSecurity(f *Facts) []Finding {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return []Finding{newFinding(Note, "Pod Security could not be tried").With("rules", "", err.Error())}
	}
	var all []Finding
	seen := map[string]bool{}
	for _, g := range f.Governed() {
		level := g.Input.Namespace.Labels[psa.EnforceLevelLabel]
		key := g.Input.Policy.Name + " " + level
		if level == "" || level == string(psa.LevelPrivileged) || seen[key] {
			continue
		}
		seen[key] = true
		if found, ok := passes(evaluator, g, level); ok {
			all = append(all, found)
		}
	}
	return all
}

// passes tries one namespace; false where its policy gives no pod a slice whatever the level.
func passes(evaluator policy.Evaluator, g Governed, level string) (Finding, bool) {
	pod, decision, ok := Sample(g)
	if !ok {
		return newFinding(Warning, "the smallest pod that requests a slice gets none in namespace %s", g.Name).
			With(object("namespace", "", g.Name), "metadata.labels["+psa.EnforceLevelLabel+"]", level).
			With("policy/"+g.Input.Policy.Name, "answer", Answer(decision)), decision.IfEnforced == policies.Denied
	}
	parsed, err := psa.ParseLevel(level)
	if err != nil {
		return newFinding(Note, "the Pod Security level of namespace %s is unknown", g.Name).
			With(object("namespace", "", g.Name), "metadata.labels["+psa.EnforceLevelLabel+"]", level), true
	}
	out := podedit.Apply(decision.Promise, pod)
	var broken []string
	for _, result := range evaluator.EvaluatePod(psa.LevelVersion{Level: parsed, Version: psa.LatestVersion()}, &out.ObjectMeta, &out.Spec) {
		if !result.Allowed {
			broken = append(broken, strings.TrimSpace(result.ForbiddenReason+" "+result.ForbiddenDetail))
		}
	}
	where, field := object("namespace", "", g.Name), "metadata.labels["+psa.EnforceLevelLabel+"]"
	if len(broken) > 0 {
		return newFinding(Problem, "Pod Security %s denies what gpuslice writes into pods of namespace %s: they fail", level, g.Name).
			With(where, field, level).With("policy/"+g.Input.Policy.Name, "what is written", strings.Join(broken, "; ")).
			WithRemedy(
				"change what is written: guard.access: env, and no mps.pipeDirectory of your own; or kubectl label namespace %s --overwrite %s=%s",
				g.Name, psa.EnforceLevelLabel, psa.LevelPrivileged), true
	}
	return newFinding(OK, "what gpuslice writes passes Pod Security %s; enforcement planned there: %s", level, decision.Planned.Tier).
		With(where, field, level).With("policy/"+g.Input.Policy.Name, "planned",
		fmt.Sprint(decision.Planned.Strategy, " on ", decision.Planned.Pool)), true
}
