package usage

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// deviceUnits are those of one device in Amount.Devices.
const deviceUnits = 28_828_800

const (
	secondsOfHour = 3600
	mibOfGiB      = 1024
)

// GiBHours is the memory of an amount times seconds.
func (a Amount) GiBHours() float64 { return float64(a.Memory) / mibOfGiB / secondsOfHour }

// DeviceHours are the devices of an amount times seconds.
func (a Amount) DeviceHours() float64 { return float64(a.Devices) / deviceUnits / secondsOfHour }

// Read reads the Days from the one of a time until before another time, in their order. unread is why others cannot be read.
func Read(ctx context.Context, client kubernetes.Interface, namespace string, from, until time.Time) (days []*Day, unread []error, err error) {
	first, end := SecondOf(from).startOfDay(), SecondOf(until)
	err = store{client, namespace}.each(ctx, func(m *corev1.ConfigMap) {
		if day, ok := dayOf(m.Name); !ok || day < first || day >= end {
			return
		}
		d, err := read(m)
		if err != nil {
			unread = append(unread, err)
			return
		}
		days = append(days, d)
	})
	slices.SortFunc(days, func(a, b *Day) int { return cmp.Compare(a.From, b.From) })
	return days, unread, err
}
