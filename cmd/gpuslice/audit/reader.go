package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// reader reads living pods and evaluates them.
type reader struct {
	Client rest.Interface
	// InputOf returns the input of a decision about a pod. For a pod that is not read, it gets the names alone.
	InputOf func(ctx context.Context, pod *corev1.Pod) (policies.Input, error)
	// PageSize is how many pods are read at once at most: all their text is held in memory. Where the client is bounded, large ones are read
	// in smaller pages.
	PageSize int
}

// each evaluates the living pods of a namespace one after the other, but for those that no policy governs.
func (r reader) each(ctx context.Context, namespace string, do func(subject)) error {
	for next, limit := "", r.PageSize; ; {
		list, err := r.page(ctx, namespace, next, limit)
		if apierrors.IsRequestEntityTooLargeError(err) && limit > 1 {
			limit /= 2
			continue
		}
		if err != nil {
			return fmt.Errorf("read pods of namespace %s: %w", namespace, err)
		}
		for _, item := range list.Items {
			p, err := r.pod(ctx, namespace, item.Raw)
			if err != nil {
				return err
			}
			if !p.in.Policy.Off() {
				do(p)
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// page reads some pods, each as it is stored: as text, of which bounds are checked before it becomes pods.
func (r reader) page(ctx context.Context, namespace, next string, limit int) (out metav1.List, err error) {
	ctx, release := bounded.Page(ctx)
	defer release()
	text, err := r.Client.Get().AbsPath("/api/v1/namespaces/"+namespace+"/pods").SetHeader("Accept", "application/json").
		Param("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed").
		Param("limit", strconv.Itoa(limit)).Param("continue", next).DoRaw(ctx)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(text, &out)
}

// pod evaluates one pod. An error means that none of the namespace can be evaluated.
func (r reader) pod(ctx context.Context, namespace string, text []byte) (subject, error) {
	raw, violation, err := rawpod.Decode(text)
	pod := raw.Pod
	if pod == nil {
		pod = podNamed(namespace, text)
	}
	in, failed := r.InputOf(ctx, pod)
	in.Pod = pod
	switch {
	case failed != nil:
		return subject{}, failed
	case err != nil: // the webhook reads it neither, and the API server denies it unless the namespace fails open
		return subject{Pod: pod, in: in, Err: errors.New(shorten.Text(err.Error(), maxMessage))}, nil // it may quote the pod's author
	case violation != nil:
		return unreadable(in, *violation, text), nil
	case in.Policy.Off():
		return subject{in: in}, nil
	}
	return evaluated(in, pod), nil
}

// evaluated evaluates a pod. A panic, as the webhook's would be, is its Err: the API server denies the pod unless the namespace fails open.
func evaluated(in policies.Input, pod *corev1.Pod) (p subject) {
	var err error
	defer func() {
		if err != nil {
			p = subject{Pod: pod, in: in, Err: err}
		}
	}()
	defer recovered(&err)
	return evaluate(in, pod)
}

// podNamed is a pod of which only the name is read.
func podNamed(namespace string, text []byte) *corev1.Pod {
	var named struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(text, &named)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: named.Metadata.Name}}
}
