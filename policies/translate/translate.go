// Package translate rewrites pods from the words of other systems into gpuslice's.
package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gomodules.xyz/jsonpatch/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// Translation is a pod in gpuslice's words.
type Translation struct {
	// Systems are those whose words the pod has, as a policy's accept list names them. Without any there is nothing to translate.
	Systems []string
	// Words are the spellings that were read: resources, annotations, labels and selectors.
	Words []string
	Pod   *corev1.Pod // nil: see Problems
	// Request is Pod's request, for people.
	Request string
	// Notes list removed settings that have no form in gpuslice, and other notes for the author.
	Notes []string
	// Problems are why the pod cannot be translated.
	Problems []string
	// Units are those of memory, by system, where they are configured.
	Units map[string]quantity.MiB
}

// SetUnit sets the unit of a system's amounts of memory.
func (t *Translation) SetUnit(system, unit string) error {
	amount, err := quantity.ParseMemory(unit)
	switch {
	case !slices.Contains(spellings.Units(), system):
		return fmt.Errorf("%q: accepted: %s", system, strings.Join(spellings.Units(), ", "))
	case err != nil:
		return fmt.Errorf("%s: %w", system, err)
	}
	if t.Units == nil {
		t.Units = map[string]quantity.MiB{}
	}
	t.Units[system] = amount
	return nil
}

// Known are the systems that are read.
func (Translation) Known() []string {
	return slices.DeleteFunc(spellings.Names(), func(name string) bool { return name == spellings.NameOfShares }) // read where pools are known
}

// of translates a pod, and does not change its argument.
func of(pod *corev1.Pod, units map[string]quantity.MiB) Translation {
	found := spellings.Find(pod, units)
	everything := &config.Policy{Name: "translation", Accept: spellings.Names(), MemoryUnits: units}
	req, _, _, violations := request.Read(pod, everything, nil, nil)
	if len(req.Containers)+len(violations) == 0 {
		return Translation{} // node selectors alone request nothing
	}
	t := Translation{Systems: systemsOf(found, req)}
	if len(t.Systems) == 0 {
		return t
	}
	for i := range req.Containers {
		if c := &req.Containers[i]; c.Quantity != "" {
			t.Words = append(t.Words, c.Resource+": "+c.Quantity)
		}
	}
	for _, f := range found {
		t.Words = append(t.Words, f.Names...)
		if len(f.Unread) > 0 {
			t.Notes = append(t.Notes, message.ShortList(f.Unread)+" has no form in gpuslice and is removed")
		}
	}
	slices.Sort(t.Words)
	t.Words = slices.Compact(t.Words)
	t.problems(violations)
	if req.Share == api.ShareDisabled {
		t.Problems = append(t.Problems,
			fmt.Sprintf("%s: %q requests no slice, and the words of another system request one; remove one side", api.LabelShare, req.Share))
	}
	if len(t.Problems) > 0 {
		return t
	}
	t.Pod = pod.DeepCopy()
	for _, f := range found {
		t.remove(f)
	}
	t.write(req)
	// labels of the pod contradict it
	if _, _, _, violations := request.Read(t.Pod, &config.Policy{Name: "translation"}, nil, nil); len(violations) > 0 {
		t.Pod = nil
		t.problems(violations)
	}
	return t
}

func (t *Translation) problems(violations []api.Violation) {
	for _, v := range violations {
		t.Problems = append(t.Problems, v.Reason+": "+v.Detail)
	}
}

// unreadSystem stands for the systems of a pod with too many words to be read.
const unreadSystem = "other systems"

// Has reports whether the pod has words of a system, or may have; "": of any.
func (t *Translation) Has(system string) bool {
	return len(t.Systems) > 0 && system == "" || slices.Contains(t.Systems, system) || slices.Contains(t.Systems, unreadSystem)
}

// systemsOf are the systems whose words were read, those of quantities included.
func systemsOf(found []spellings.Found, req api.Request) (names []string) {
	for _, f := range found {
		names = append(names, cmp.Or(f.Spelling.Name, unreadSystem))
	}
	for i := range req.Containers {
		if req.Containers[i].Quantity != "" {
			names = append(names, spellings.NameOfQuantities)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// remove removes the spellings that were read. Node selectors stay, since nodes have them.
func (t *Translation) remove(f spellings.Found) {
	for _, name := range f.Names {
		delete(t.Pod.Annotations, name)
		delete(t.Pod.Labels, name)
	}
	for c := range podspec.Containers(&t.Pod.Spec) {
		for name := range f.Resources {
			delete(c.Resources.Limits, corev1.ResourceName(name))
			delete(c.Resources.Requests, corev1.ResourceName(name))
		}
	}
	if slices.Contains(f.Spelling.Schedulers, t.Pod.Spec.SchedulerName) {
		t.Notes = append(t.Notes,
			fmt.Sprintf("schedulerName %s is removed: the scheduler of %s is not needed", t.Pod.Spec.SchedulerName, f.Spelling.System))
		t.Pod.Spec.SchedulerName = ""
	}
}

// write writes the request: labels where all containers request the same and no annotation stands there, else the annotation.
func (t *Translation) write(req api.Request) {
	sizes := map[string]api.Size{}
	var words []string
	for i := range req.Containers {
		c := &req.Containers[i]
		spec, _ := podspec.ContainerNamed(&t.Pod.Spec, c.Name)
		writeGPUs(spec, c)
		sizes[c.Name] = c.Size
		words = append(words, fmt.Sprintf("%s %s", c.Name, described(c, req.Strategy)))
	}
	t.Request = strings.Join(words, "; ")
	all := slices.Collect(maps.Values(sizes))
	_, annotated := t.Pod.Annotations[api.AnnotationContainers] // which labels do not change
	same := !annotated && !slices.ContainsFunc(all, func(s api.Size) bool { return s != all[0] })
	part := spellings.Part{Strategy: req.Strategy}
	if same {
		part.Size = all[0]
	} else {
		text, _ := json.Marshal(sizes) // a Size can always be encoded
		metav1.SetMetaDataAnnotation(&t.Pod.ObjectMeta, api.AnnotationContainers, string(text))
	}
	labels := part.Labels()
	if same && len(labels) == 0 && req.Explicit { // the default slice
		labels = append(labels, spellings.Label{Name: api.LabelShare, Value: api.ShareEnabled})
	}
	for _, label := range labels {
		metav1.SetMetaDataLabel(&t.Pod.ObjectMeta, label.Name, label.Value)
	}
}

// writeGPUs has a container request whole units.
func writeGPUs(c *corev1.Container, asks *api.ContainerRequest) {
	name, n := corev1.ResourceName(api.ResourceGPU), *resource.NewQuantity(asks.GPUs, resource.DecimalSI)
	if asks.Resource != "" {
		name = corev1.ResourceName(asks.Resource)
	}
	if c.Resources.Limits == nil {
		c.Resources.Limits = corev1.ResourceList{}
	}
	c.Resources.Limits[name] = n
	if _, ok := c.Resources.Requests[name]; ok {
		c.Resources.Requests[name] = n
	}
}

// described is a container's request, as its author writes it.
func described(c *api.ContainerRequest, strategy api.StrategyName) string {
	var words []string
	for _, label := range (spellings.Part{Size: c.Size, Strategy: strategy}).Labels() {
		words = append(words, strings.TrimPrefix(label.Name, api.Domain+"/")+" "+label.Value)
	}
	of := ""
	if c.GPUs > 1 {
		of = fmt.Sprintf(" of each of %d GPUs", c.GPUs)
	}
	return cmp.Or(strings.Join(words, ", "), "a slice") + of
}

// Read translates a pod as it is written. The operations turn raw into the translation, so that fields which this build
// does not know stay. An error: it is no pod.
func (t *Translation) Read(raw []byte) ([]jsonpatch.Operation, error) {
	pod, violation, err := rawpod.Decode(raw)
	if err != nil {
		return nil, err
	}
	if violation != nil {
		return nil, fmt.Errorf("%s: %s", violation.Reason, violation.Detail)
	}
	*t = of(pod.Pod, t.Units)
	if t.Pod == nil {
		return nil, nil
	}
	return podedit.Operations(pod.Text, pod.Pod, t.Pod), nil
}
