package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/webhook/leader/days"
)

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
func Read(ctx context.Context, client kubernetes.Interface, namespace string, from, until time.Time) (all []*Day, unread []error, err error) {
	s := storeIn(client, namespace)
	err = s.Each(ctx, func(day time.Time, m *corev1.ConfigMap) {
		if day.Before(days.Start(from)) || !day.Before(until) {
			return
		}
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
