package translate

import (
	"fmt"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/translate"
)

// translated is an object and its translation.
type translated struct {
	manifest.Object
	translate.Translation
	after []byte // as JSON; nil: it cannot be translated
}

// known are the systems that are read.
func known() []string { return translate.Translation{}.Known() }

// of translates a pod, or the templates of a workload, with the units that as has. Everything else stays as it is.
func of(o manifest.Object, as translate.Translation) (translated, error) {
	if o.Kind == "Pod" && o.APIVersion == "v1" {
		return pod(o, o.Raw, as)
	}
	out := translated{Object: o, after: o.Raw}
	templates, err := manifest.Templates(o)
	if err != nil {
		return translated{}, err
	}
	for _, t := range templates {
		raw, err := t.Pod(o)
		if err != nil {
			return translated{}, err
		}
		one, err := pod(o, raw, as)
		if err != nil {
			return translated{}, err
		}
		if t.Partial() && one.Translation.Pod != nil {
			one.Problems = append(one.Problems,
				fmt.Sprintf("the controller of %s completes the container in %s: write its request (%s) where the kind takes labels of pods",
					o.Kind, t.Path(), one.Request))
		}
		if err := out.add(t, one); err != nil {
			return translated{}, err
		}
	}
	return out, nil
}

// add puts in the translation of one template. A workload of which one cannot be translated is not, as a whole.
func (t *translated) add(of manifest.Template, one translated) error {
	t.Systems = compacted(t.Systems, one.Systems)
	t.Words = compacted(t.Words, one.Words)
	t.Notes = compacted(t.Notes, one.Notes)
	t.Problems = compacted(t.Problems, one.Problems)
	switch {
	case len(t.Problems) > 0:
		t.Translation.Pod, t.Request, t.after = nil, "", nil
		return nil
	case one.Translation.Pod == nil:
		return nil
	}
	t.Translation.Pod = one.Translation.Pod
	if t.Request != "" && t.Request != one.Request {
		one.Request = t.Request + "; " + one.Request
	}
	t.Request = one.Request
	var err error
	t.after, err = of.Graft(t.after, one.after)
	return err
}

func compacted(a, b []string) []string {
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}

func pod(o manifest.Object, raw []byte, as translate.Translation) (translated, error) {
	out := translated{Object: o, Translation: as}
	operations, err := out.Read(raw)
	if err != nil || len(out.Problems) > 0 {
		return out, err
	}
	if out.after, err = manifest.Patch(raw, operations); err != nil {
		return translated{}, fmt.Errorf("write the translation: %w", err)
	}
	return out, nil
}
