package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
)

// NamePrefix begins the names of the ConfigMaps; the UTC day follows, as in gpuslice-usage-2026-11-22. Each has Label.
const (
	NamePrefix = "gpuslice-usage-"
	Label      = api.Domain + "/usage"

	dayKey  = "usage.json"
	keptKey = "unreadable" // the beginning of the last text in the place of dayKey that could not be read
	maxKept = 64 << 10
)

// store keeps Days in ConfigMaps of the system namespace.
type store struct{ days.Store }

func storeIn(client kubernetes.Interface, namespace string) store {
	return store{days.Store{Client: client, Namespace: namespace, What: "usage", Prefix: NamePrefix, Label: Label}}
}

// stored is a Day and the version of its ConfigMap.
type stored struct {
	*Day
	version days.Version
	kept    string // a text that could not be read
}

// get reads the Day of a time; nil: there is none. Of one that cannot be read the first maxKept bytes are kept beside a
// new one, which begins at that time, until the next. A newer version's Day is left alone: its error is days.ErrNewer.
func (s store) get(ctx context.Context, at Second) (*stored, error) {
	m, err := s.Get(ctx, at.Time())
	if m == nil || err != nil {
		return nil, err
	}
	d, err := s.read(m)
	if errors.Is(err, days.ErrNewer) {
		return nil, err
	}
	if err != nil {
		return &stored{newDay(at), days.VersionOf(m), m.Data[dayKey]}, nil
	}
	return &stored{d, days.VersionOf(m), m.Data[keptKey]}, nil
}

// read reads a ConfigMap.
func (s store) read(m *corev1.ConfigMap) (*Day, error) {
	d, err := decode(m.Data[dayKey])
	if day, ok := s.DayOf(m.Name); err == nil && (!ok || d.From.startOfDay() != SecondOf(day)) {
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
	m := &corev1.ConfigMap{Data: map[string]string{dayKey: text}}
	if was.kept != "" {
		m.Data[keptKey] = was.kept[:min(len(was.kept), maxKept)]
	}
	written, err := s.Put(ctx, d.From.Time(), was.version, m)
	if err != nil {
		return nil, err
	}
	return &stored{d, written, was.kept}, nil
}

// latest reads the last Day that there is; nil: there is none, or a newer version wrote it before today.
func (s store) latest(ctx context.Context, now Second) (*stored, error) {
	for _, at := range []Second{now, now - dayLength} {
		found, err := s.get(ctx, at)
		if at != now && errors.Is(err, days.ErrNewer) {
			return nil, nil
		}
		if found != nil || err != nil {
			return found, err
		}
	}
	var last time.Time
	err := s.Each(ctx, time.Time{}, time.Time{}, func(day time.Time, _ *corev1.ConfigMap) {
		if day.After(last) {
			last = day
		}
	})
	if last.IsZero() || err != nil {
		return nil, err
	}
	found, err := s.get(ctx, SecondOf(last))
	if SecondOf(last) < now.startOfDay() && errors.Is(err, days.ErrNewer) {
		return nil, nil
	}
	return found, err
}

// DeviceUnits is one device in Amount.Devices.
const DeviceUnits = 28_828_800

const (
	secondsOfHour = 3600
	mibOfGiB      = 1024
)

// GiBHours is the memory of an amount times seconds.
func (a Amount) GiBHours() float64 { return float64(a.Memory) / mibOfGiB / secondsOfHour }

// DeviceHours are the devices of an amount times seconds.
func (a Amount) DeviceHours() float64 { return float64(a.Devices) / DeviceUnits / secondsOfHour }

// Read reads the Days from the one of a time until before another time, in their order. unread is why others cannot be read.
func Read(ctx context.Context, client kubernetes.Interface, namespace string,
	from, until time.Time) (all []*Day, unread []error, err error) {
	s := storeIn(client, namespace)
	err = s.Each(ctx, from, until, func(_ time.Time, m *corev1.ConfigMap) {
		d, err := s.read(m)
		if err != nil {
			unread = append(unread, err)
			return
		}
		all = append(all, d)
	})
	slices.SortFunc(all, func(a, b *Day) int { return cmp.Compare(a.From, b.From) })
	return all, unread, err
}
