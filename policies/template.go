package policies

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/pools"
)

// Template decides a workload (Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController, Job, CronJob)
// whose pod template may hold fractional GPU quantities, which Kubernetes denies there. kind is the workload's kind,
// tree its JSON. Under TemplatesCheck the denial contains the spelling to use instead, under TemplatesRewrite the
// operations write it.
func Template(in Input, kind string, tree map[string]any) (Decision, []jsonpatch.Operation) {
	violation, patch := CheckTemplate(in.Policy, kind, tree)
	switch {
	case violation != nil:
		return in.Deny(*violation), nil
	case len(patch) == 0:
		d := leaveUnchanged(whyNoFraction)
		d.Warnings = templateWarnings(in, tree)
		return d, nil
	}
	return Decision{Outcome: Mutated, IfEnforced: Mutated, Policy: in.Policy.Name, Mode: in.Policy.EnforcementMode}, patch
}

// templateWarnings lists the labels without effect, for the author of a template, whom no warning about its pods reaches.
func templateWarnings(in Input, tree map[string]any) []string {
	_, template := podTemplate(tree)
	metadata, _ := template["metadata"].(map[string]any)
	labels, annotations := textsOf(metadata["labels"]), textsOf(metadata["annotations"])
	switch {
	case in.Policy == nil:
		for _, name := range request.Labels() {
			if _, written := labels[name]; written {
				return []string{fmt.Sprintf("label %s of the template has no effect: no policy governs the namespace", name)}
			}
		}
	case !in.Policy.Off() && in.Policy.EnforcementMode != api.EnforceAudit:
		return LabelWarnings(labels, annotations)
	}
	return nil
}

// LabelWarnings says which labels and annotations of a pod, or of the template of pods, are spelled as if gpuslice read them and have no
// effect.
func LabelWarnings(labels, annotations map[string]string) []string {
	return request.Ineffective(labels, annotations)
}

// textsOf are the members of an object that are text.
func textsOf(object any) map[string]string {
	members, _ := object.(map[string]any)
	texts := make(map[string]string, len(members))
	for name, value := range members {
		if text, ok := value.(string); ok {
			texts[name] = text
		}
	}
	return texts
}

const whyNoFraction = "no fraction in the template"

// CheckTemplate is Template before the policy's enforcementMode: the API server's denial, or the operations that
// prevent it. Nothing found, or no policy: neither.
func CheckTemplate(p *config.Policy, kind string, tree map[string]any) (*api.Violation, []jsonpatch.Operation) {
	if p.Off() || p.Templates == modes.TemplatesOff {
		return nil, nil
	}
	path, template := podTemplate(tree)
	found := templateFractions(path, template)
	if len(found) == 0 {
		return nil, nil
	}
	if p.Templates == modes.TemplatesRewrite && p.EnforcementMode != api.EnforceAudit &&
		slices.Contains(p.Accept, "fractional-quantity") && oneLabelSays(template, found) {
		return nil, rewriteTemplate(path, template, found)
	}
	f := found[0]
	return &api.Violation{Rule: api.RuleTemplate, Reason: "fraction of a GPU in a template", Field: f.field, Detail: fmt.Sprintf(
		"%s %s: container %q requests %s: %q, and Kubernetes takes whole numbers only in the template of a %s; write %s: 1 there and "+
			"the label %s: %q in %s/metadata/labels", kind, f.path, f.container,
		f.resource, f.text, kind, f.resource, api.LabelFraction, f.fraction, path)}, nil
}

// templateFraction is one fractional quantity of a template.
type templateFraction struct {
	path, field, container, resource, text string
	fraction                               quantity.Fraction
}

// podTemplate returns the workload's pod template and its JSON pointer.
func podTemplate(tree map[string]any) (string, map[string]any) {
	spec, _ := tree["spec"].(map[string]any)
	path := "/spec"
	if job, ok := spec["jobTemplate"].(map[string]any); ok { // CronJob
		path += "/jobTemplate/spec"
		spec, _ = job["spec"].(map[string]any)
	}
	template, _ := spec["template"].(map[string]any)
	return path + "/template", template
}

func templateFractions(path string, template map[string]any) (out []templateFraction) {
	spec, _ := template["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for i, c := range containers {
			if i == MaxContainers {
				break
			}
			container, _ := c.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			name, _ := container["name"].(string)
			for _, kind := range []string{"limits", "requests"} {
				quantities, _ := resources[kind].(map[string]any)
				for _, res := range slices.Sorted(maps.Keys(quantities)) {
					if fraction, text, ok := fractionOf(res, quantities[res]); ok {
						at := path + "/spec/" + list + "/" + strconv.Itoa(i) + "/resources/" + kind + "/" + podedit.EscapePointer(res)
						place := field.NewPath(strings.TrimPrefix(strings.ReplaceAll(path, "/", "."), ".")).Child("spec", list).
							Index(i).Child("resources", kind).Key(res)
						out = append(out, templateFraction{at, place.String(), name, res, text, fraction})
					}
				}
			}
		}
	}
	return out
}

// fractionOf reads a quantity of a GPU resource that is a fraction of one.
func fractionOf(name string, written any) (quantity.Fraction, string, bool) {
	text := quantity.Text(written)
	if !pools.IsGPU(name, nil) || len(text) > quantity.MaxText || !quantity.Cheap.MatchString(text) {
		return quantity.Fraction{}, "", false
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return quantity.Fraction{}, "", false
	}
	_, fraction, err := quantity.GPUs(q)
	return fraction, text, err == nil && !fraction.Zero()
}

// oneLabelSays reports whether one label can say it all: it means every GPU container of the pod, and the template must not
// say another size already.
func oneLabelSays(template map[string]any, found []templateFraction) bool {
	requests := func(container string) bool {
		return slices.ContainsFunc(found, func(f templateFraction) bool { return f.container == container })
	}
	if slices.ContainsFunc(found, func(f templateFraction) bool { return f.fraction != found[0].fraction }) {
		return false
	}
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if labels[api.LabelMemory] != nil || labels[api.LabelClass] != nil || annotations[api.AnnotationContainers] != nil {
		return false
	}
	if text, ok := labels[api.LabelFraction].(string); ok {
		if fraction, err := quantity.ParseFraction(text); err != nil || fraction != found[0].fraction {
			return false
		}
	}
	return !slices.ContainsFunc(gpuContainersOf(template), func(name string) bool { return !requests(name) })
}

// gpuContainersOf names the containers of a template that request a GPU in any quantity.
func gpuContainersOf(template map[string]any) (names []string) {
	spec, _ := template["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			resources, _ := container["resources"].(map[string]any)
			limits, _ := resources["limits"].(map[string]any)
			name, _ := container["name"].(string)
			if slices.ContainsFunc(slices.Sorted(maps.Keys(limits)), func(named string) bool { return pools.IsGPU(named, nil) }) {
				names = append(names, name)
			}
		}
	}
	return names
}

func rewriteTemplate(path string, template map[string]any, found []templateFraction) []jsonpatch.Operation {
	var ops []jsonpatch.Operation
	for _, f := range found {
		ops = append(ops, jsonpatch.NewOperation("replace", f.path, "1"))
	}
	metadata, _ := template["metadata"].(map[string]any)
	if metadata == nil {
		ops = append(ops, jsonpatch.NewOperation("add", path+"/metadata", map[string]any{}))
	}
	if labels, _ := metadata["labels"].(map[string]any); labels == nil {
		ops = append(ops, jsonpatch.NewOperation("add", path+"/metadata/labels", map[string]any{}))
	}
	text, _ := found[0].fraction.MarshalText()
	return append(ops, jsonpatch.NewOperation("add", path+"/metadata/labels/"+podedit.EscapePointer(api.LabelFraction), string(text)))
}
