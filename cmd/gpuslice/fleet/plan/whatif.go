package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
)

// maxAdded bounds --add.
const maxAdded = 100_000

// whatIf applies --what-if to the flags that it sets, and returns how many replicas the plan is to have; 0: any number.
func (o *options) whatIf() (replicas int, err error) {
	for _, question := range o.questions {
		name, value, _ := strings.Cut(question, "=")
		switch name {
		case "replicas":
			if replicas, err = strconv.Atoi(value); err != nil || replicas < 1 || replicas > layout.MaxReplicas {
				return 0, fmt.Errorf("--what-if %s: accepted: replicas=1 to replicas=%d", question, layout.MaxReplicas)
			}
		case "sizes":
			o.sizes = value
		default:
			return 0, fmt.Errorf("--what-if %s: accepted: replicas=N, sizes=SIZES", question)
		}
	}
	return replicas, nil
}

// without removes nodes. Their pods wait, to be placed elsewhere.
func without(f *demand.Fleet, names []string) error {
	if len(names) == 0 {
		return nil
	}
	index := make([]int, len(f.Nodes)) // of the nodes that stay, from 1
	var left []demand.Node
	missing := slices.Clone(names)
	for i, n := range f.Nodes {
		if at := slices.Index(missing, n.Name); at >= 0 {
			missing = slices.Delete(missing, at, at+1)
		}
		if slices.Contains(names, n.Name) {
			f.Kinds[n.Kind].Nodes--
			continue
		}
		left = append(left, n)
		index[i] = len(left)
	}
	if len(missing) > 0 {
		return fmt.Errorf("--without %s: no node of the fleet has the name", missing[0])
	}
	f.Nodes = left
	for i := range f.Pods {
		if p := &f.Pods[i]; p.Node > 0 {
			p.Node = index[p.Node-1]
		}
	}
	return nil
}

// add adds nodes like those that are there, for values such as 4xH100: as many nodes of the model as have so many GPUs.
func add(f *demand.Fleet, values []string) error {
	added := 0
	for _, value := range values {
		count, model, ok := strings.Cut(value, "x")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 1 || n > maxAdded || model == "" {
			return fmt.Errorf("--add %s: accepted: GPUs of a model, such as 4xH100", value)
		}
		kind := slices.IndexFunc(f.Kinds, func(k demand.Kind) bool { return k.Nodes > 0 && k.Devices > 0 && named(k.Model, model) })
		if kind < 0 {
			return fmt.Errorf(
				"--add %s: no node of the fleet has GPUs of that model, so what CPU and memory such nodes have is unknown: there are %s",
				value, models(f))
		}
		for ; n > 0; n -= f.Kinds[kind].Devices {
			f.Add(fmt.Sprintf("added-%s-%d", strings.ToLower(model), added), kind)
			f.Nodes[len(f.Nodes)-1].Added = true
			added++
		}
	}
	return nil
}

// named reports whether a model has a name, or has it as one of its words.
func named(model, name string) bool {
	model, name = strings.ToUpper(model), strings.ToUpper(name)
	return model == name || slices.Contains(strings.FieldsFunc(model, func(r rune) bool { return r == '-' || r == ' ' }), name)
}

func models(f *demand.Fleet) string {
	var names []string
	for _, kind := range f.Used() {
		names = append(names, f.Kinds[kind].Model)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
