// Package days keeps what the leader records of each UTC day: one ConfigMap a day, in the system namespace.
//
// A ConfigMap is written only over the version that was read, so that two replicas that lead for a moment lose nothing of each other.
package days

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
)

// Length is the length of a UTC day.
const Length = 24 * time.Hour

// MaxBytes bounds the data of a ConfigMap: the API server takes 1 MiB.
const MaxBytes = 900 << 10

const listPage = 20 // ConfigMaps of one list: each may have MaxBytes

// ErrChanged is the error of a write over another version than was read.
var ErrChanged = errors.New("it was written since it was read")

// ErrNewer is the error of a record in a format of a later version.
var ErrNewer = errors.New("a newer version of gpuslice wrote it")

// CheckFormat returns why a record cannot be read of which a JSON decoder read this format and returned err. Of a newer format, other
// fields may have other types.
func CheckFormat(format, known int, err error) error {
	switch {
	case format > known:
		return fmt.Errorf("format %d, this build reads %d: %w", format, known, ErrNewer)
	case err != nil:
		return fmt.Errorf("not the record of a day: %w", err)
	case format != known:
		return fmt.Errorf("format %d, this build reads %d", format, known)
	}
	return nil
}

// Store is the ConfigMaps of one kind of record.
type Store struct {
	Client    kubernetes.Interface
	Namespace string
	What      string // for errors, such as "usage"
	Prefix    string // of the ConfigMaps' names; the day follows, as in gpuslice-usage-2026-11-22
	Label     string // of each ConfigMap, with the value "true"
}

// Version is the version of a ConfigMap that was read. The zero value: there is none yet.
type Version struct {
	Resource string
	UID      types.UID
}

// VersionOf is the version of a ConfigMap.
func VersionOf(m *corev1.ConfigMap) Version { return Version{m.ResourceVersion, m.UID} }

// Start is when the UTC day of a time starts.
func Start(at time.Time) time.Time { return at.UTC().Truncate(Length) }

// Name is the name of the ConfigMap of a time's day.
func (s Store) Name(at time.Time) string { return s.Prefix + at.UTC().Format(time.DateOnly) }

// DayOf is when the day of a ConfigMap starts; false: its name names no day.
func (s Store) DayOf(name string) (time.Time, bool) {
	day, named := strings.CutPrefix(name, s.Prefix)
	t, err := time.Parse(time.DateOnly, day)
	return t, named && err == nil
}

// Get reads the ConfigMap of a time's day; nil: there is none.
func (s Store) Get(ctx context.Context, at time.Time) (*corev1.ConfigMap, error) {
	m, err := s.Client.CoreV1().ConfigMaps(s.Namespace).Get(ctx, s.Name(at), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.What, err)
	}
	return m, nil
}

// Put writes the data of m as the ConfigMap of a time's day, over the version that was read.
func (s Store) Put(ctx context.Context, at time.Time, over Version, m *corev1.ConfigMap) (Version, error) {
	m.ObjectMeta = metav1.ObjectMeta{Name: s.Name(at), Namespace: s.Namespace, ResourceVersion: over.Resource, UID: over.UID,
		Labels: map[string]string{"app.kubernetes.io/name": "gpuslice", s.Label: "true"}}
	client := s.Client.CoreV1().ConfigMaps(s.Namespace)
	var written *corev1.ConfigMap
	var err error
	if over == (Version{}) {
		written, err = client.Create(ctx, m, metav1.CreateOptions{})
	} else {
		written, err = client.Update(ctx, m, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), over != (Version{}) && apierrors.IsNotFound(err):
		return Version{}, ErrChanged
	case err != nil:
		return Version{}, fmt.Errorf("write %s: %w", s.What, err)
	}
	return VersionOf(written), nil
}

// Prune removes the days before the one of a time.
func (s Store) Prune(ctx context.Context, before time.Time) error {
	var errs []error
	err := s.Each(ctx, time.Time{}, Start(before), func(_ time.Time, m *corev1.ConfigMap) {
		err := s.Client.CoreV1().ConfigMaps(s.Namespace).
			Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("remove ConfigMap %s: %w", m.Name, err))
		}
	})
	return errors.Join(append(errs, err)...)
}

// Each calls f with every day that has a ConfigMap, from the day of a time until before another time (zero: to the last day).
func (s Store) Each(ctx context.Context, from, until time.Time, f func(day time.Time, m *corev1.ConfigMap)) error {
	o := metav1.ListOptions{LabelSelector: s.Label + "=true", Limit: listPage}
	for {
		list, err := s.Client.CoreV1().ConfigMaps(s.Namespace).List(ctx, o)
		if err != nil {
			return fmt.Errorf("list %s: %w", s.What, err)
		}
		for i := range list.Items {
			day, ok := s.DayOf(list.Items[i].Name)
			if ok && !day.Before(Start(from)) && (until.IsZero() || day.Before(until)) {
				f(day, &list.Items[i])
			}
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}
