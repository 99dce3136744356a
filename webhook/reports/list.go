package reports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
)

// podsPerPage is how many pods are read at once: the API server stores some of a megabyte.
const podsPerPage = 50

// page is a part of a list, each item as it is stored.
type page struct {
	Metadata metav1.ListMeta   `json:"metadata"`
	Items    []json.RawMessage `json:"items"`
}

// pods evaluates the living pods of a namespace. others are those that no quota counts.
func (a *Auditor) pods(ctx context.Context, namespace string) (pods []Pod, others []Subject, err error) {
	for next := ""; ; {
		list, err := a.page(ctx, namespace, next)
		if err != nil {
			return nil, nil, fmt.Errorf("read pods of namespace %s: %w", namespace, err)
		}
		for _, text := range list.Items {
			p, problem, err := a.pod(ctx, namespace, text)
			switch {
			case err != nil:
				return nil, nil, err
			case problem != nil:
				others = append(others, *problem)
			case p.in.Policy.Off(): // since the namespaces were listed
			case p.idle():
				others = append(others, Subject{Result: skipped})
			default:
				p.forget()
				pods = append(pods, p)
			}
		}
		if next = list.Metadata.Continue; next == "" {
			return pods, others, nil
		}
	}
}

// page reads some pods as text, of which bounds are checked before it becomes pods.
func (a *Auditor) page(ctx context.Context, namespace, next string) (out page, err error) {
	text, err := a.store.Client.Get().AbsPath("/api/v1/namespaces/"+namespace+"/pods").SetHeader("Accept", "application/json").
		Param("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed").Param("limit", strconv.Itoa(podsPerPage)).Param("continue", next).DoRaw(ctx)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// pod evaluates one pod. problem is why it cannot be; err is why none of the namespace can.
func (a *Auditor) pod(ctx context.Context, namespace string, text []byte) (p Pod, problem *Subject, err error) {
	raw, violation, err := promise.DecodePod(text)
	if violation != nil {
		err = errors.New(violation.String())
	}
	if err != nil {
		return p, &Subject{"Pod", nameOf(text), erred, "", shortened(err.Error())}, nil
	}
	in, err := a.options.InputOf(ctx, raw.Pod)
	if err != nil {
		return p, nil, err
	}
	if in.Policy.Off() {
		return Pod{in: in}, nil, nil
	}
	if p, err = evaluated(in, raw.Pod); err != nil {
		a.options.Log.Error(err, "cannot evaluate a pod", "namespace", namespace, "pod", raw.Pod.Name)
		return p, &Subject{"Pod", raw.Pod.Name, erred, "", "the pod cannot be evaluated; the webhook's log has why"}, nil
	}
	return p, nil, nil
}

// evaluated evaluates a pod. A panic is an error.
func evaluated(in policies.Input, pod *corev1.Pod) (p Pod, err error) {
	defer recovered(&err)
	return Evaluate(in, pod), nil
}

// nameOf is the name of a pod that is not read otherwise.
func nameOf(text []byte) string {
	var named struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(text, &named)
	return named.Metadata.Name
}
