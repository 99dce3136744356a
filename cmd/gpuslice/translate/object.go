package translate

import (
	"fmt"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/manifest"
	"github.com/gpuslice/gpuslice/policies/translate"
)

// translated is an object and what became of it.
type translated struct {
	manifest.Object
	translate.Translation
	after []byte // as JSON; nil: it cannot be translated
}

// known are the systems that are read.
func known() []string { return translate.Translation{}.Known() }

// of translates a pod, or the template of a workload. Everything else stays as it is.
func of(o manifest.Object) (translated, error) {
	if o.Kind == "Pod" && o.APIVersion == "v1" {
		return pod(o, o.Raw)
	}
	t, ok := manifest.TemplateOf(o.Raw)
	if !ok {
		return translated{Object: o, after: o.Raw}, nil
	}
	raw, err := t.Pod(o)
	if err != nil {
		return translated{}, err
	}
	out, err := pod(o, raw)
	if err != nil || out.after == nil {
		return out, err
	}
	if out.Pod == nil {
		out.after = o.Raw
		return out, nil
	}
	out.after, err = t.Graft(o.Raw, out.after)
	return out, err
}

func pod(o manifest.Object, raw []byte) (translated, error) {
	out := translated{Object: o}
	operations, err := out.Read(raw)
	if err != nil || len(out.Problems) > 0 {
		return out, err
	}
	if out.after, err = manifest.Patch(raw, operations); err != nil {
		return translated{}, fmt.Errorf("write the translation: %w", err)
	}
	return out, nil
}
