package plan

import (
	"fmt"
	"strings"
)

// maxNamed is how many containers the words about a pod's slices name.
const maxNamed = 3

// inWords describes the containers' slices, for people: "8Gi of NVIDIA L4".
func inWords(chosen *candidate, same []*candidate) string {
	list := chosen.containers
	amounts := make([]string, len(list))
	for i := range list {
		p, text := &list[i], "one replica"
		if p.size.slice > 0 {
			text = p.size.slice.Human()
		}
		if p.size.limit > p.size.slice {
			text += " (up to " + p.size.limit.Human() + ")"
		}
		if n := p.request.GPUs; n > 1 {
			text = fmt.Sprintf("%d x %s", n, text)
		}
		if len(list) > 1 {
			text = p.request.Name + " " + text
		}
		amounts[i] = text
	}
	if more := len(amounts) - maxNamed; more > 0 {
		amounts = append(amounts[:maxNamed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(amounts, ", ") + " of " + deviceInWords(chosen, same)
}

// deviceInWords is the model of every device that the pod may be given, or "a GPU". GKE writes models in lower case.
func deviceInWords(chosen *candidate, same []*candidate) string {
	first := chosen.pool()
	for _, c := range append(same[:len(same):len(same)], chosen) {
		for i := range c.containers {
			if c.containers[i].pool.Product != first.Product {
				return "a GPU"
			}
		}
	}
	model := strings.ReplaceAll(first.Product, "-", " ")
	if strings.HasPrefix(model, "nvidia ") {
		model = strings.ToUpper(model)
	}
	switch {
	case model == "":
		return "a GPU"
	case len(chosen.containers) == 1 && first.MIGProfile != "":
		return model + " " + first.MIGProfile
	}
	return model
}
