package usage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
)

// NamePrefix begins the names of the ConfigMaps; the UTC day follows, as in gpuslice-usage-2026-11-22. Each has Label.
const (
	NamePrefix = "gpuslice-usage-"
	Label      = api.Domain + "/usage"

	dayKey    = "usage.json"
	keptKey   = "unreadable" // the beginning of the last text in the place of dayKey that could not be read
	dayFormat = "2006-01-02"
	maxKept   = 64 << 10
	listPage  = 20 // ConfigMaps of one list: each may have 900 KiB
)

// errChanged is the error of a write over another version than was read.
var errChanged = errors.New("it was written since it was read")

// store keeps Days in ConfigMaps of the system namespace.
type store struct {
	client    kubernetes.Interface
	namespace string
}

// stored is a Day and the version of its ConfigMap.
type stored struct {
	*Day
	version string // "": there is no ConfigMap yet
	uid     types.UID
	kept    string // a text that could not be read
}

func nameOf(day Second) string { return NamePrefix + day.Time().Format(dayFormat) }

// dayOf is when the day of a ConfigMap starts.
func dayOf(name string) (Second, bool) {
	t, err := time.Parse(dayFormat, strings.TrimPrefix(name, NamePrefix))
	return SecondOf(t), err == nil && strings.HasPrefix(name, NamePrefix)
}

// get reads the Day of a time; nil: there is none. Of one that cannot be read the first maxKept bytes are kept beside a new one, which
// begins at that time, until the next. What a newer build wrote is left alone: its error is errNewer.
func (s store) get(ctx context.Context, at Second) (*stored, error) {
	m, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, nameOf(at.startOfDay()), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	d, err := read(m)
	if errors.Is(err, errNewer) {
		return nil, err
	}
	if err != nil {
		return &stored{newDay(at), m.ResourceVersion, m.UID, m.Data[dayKey]}, nil
	}
	return &stored{d, m.ResourceVersion, m.UID, m.Data[keptKey]}, nil
}

// read reads a ConfigMap.
func read(m *corev1.ConfigMap) (*Day, error) {
	d, err := decode(m.Data[dayKey])
	if day, ok := dayOf(m.Name); err == nil && (!ok || d.From.startOfDay() != day) {
		err = errors.New("it holds another day")
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", m.Name, err)
	}
	return d, nil
}

// put writes d over the version that was read.
func (s store) put(ctx context.Context, was *stored, d *Day) (*stored, error) {
	text, err := d.encode()
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(d.From.startOfDay()), Namespace: s.namespace, ResourceVersion: was.version, UID: was.uid,
			Labels: map[string]string{"app.kubernetes.io/name": "gpuslice", Label: "true"}},
		Data: map[string]string{dayKey: text},
	}
	if was.kept != "" {
		m.Data[keptKey] = was.kept[:min(len(was.kept), maxKept)]
	}
	client := s.client.CoreV1().ConfigMaps(s.namespace)
	var written *corev1.ConfigMap
	if was.version == "" {
		written, err = client.Create(ctx, m, metav1.CreateOptions{})
	} else {
		written, err = client.Update(ctx, m, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), was.version != "" && apierrors.IsNotFound(err):
		return nil, errChanged
	case err != nil:
		return nil, fmt.Errorf("write usage: %w", err)
	}
	return &stored{d, written.ResourceVersion, written.UID, was.kept}, nil
}

// latest reads the last Day that there is; nil: there is none, or a newer build wrote it before today.
func (s store) latest(ctx context.Context, now Second) (*stored, error) {
	for _, at := range []Second{now, now - dayLength} {
		found, err := s.get(ctx, at)
		if at != now && errors.Is(err, errNewer) {
			return nil, nil
		}
		if found != nil || err != nil {
			return found, err
		}
	}
	var last Second
	err := s.each(ctx, func(m *corev1.ConfigMap) {
		if day, ok := dayOf(m.Name); ok {
			last = max(last, day)
		}
	})
	if last == 0 || err != nil {
		return nil, err
	}
	found, err := s.get(ctx, last)
	if last < now.startOfDay() && errors.Is(err, errNewer) {
		return nil, nil
	}
	return found, err
}

// prune removes the Days before one.
func (s store) prune(ctx context.Context, before Second) error {
	var errs []error
	err := s.each(ctx, func(m *corev1.ConfigMap) {
		if day, ok := dayOf(m.Name); !ok || day >= before {
			return
		}
		err := s.client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove ConfigMap %s: %w", m.Name, err))
		}
	})
	return errors.Join(append(errs, err)...)
}

// each calls f with every ConfigMap of a Day.
func (s store) each(ctx context.Context, f func(*corev1.ConfigMap)) error {
	o := metav1.ListOptions{LabelSelector: Label + "=true", Limit: listPage}
	for {
		list, err := s.client.CoreV1().ConfigMaps(s.namespace).List(ctx, o)
		if err != nil {
			return fmt.Errorf("list usage: %w", err)
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}
