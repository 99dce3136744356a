package guard

import (
	"cmp"
	"strings"
)

// order compares two values: negative when the first comes first.
type order[T any] func(a, b T) int

// then composes orders: the first that tells the two apart decides.
func then[T any](orders ...order[T]) order[T] {
	return func(a, b T) int {
		for _, o := range orders {
			if c := o(a, b); c != 0 {
				return c
			}
		}
		return 0
	}
}

// worst is the order in which containers past their wall are acted on: one that
// is not left alone, then one that was confirmed, then the largest excess, then
// by place.
var worst = then(byLeft, byConfirmed, byExcess, byPlace)

// victim is the order in which the processes of a container are ended: the one
// that holds most, then the newest, then the highest PID.
var victim = then(byMostHeld, byNewest, byHighestPID)

func byLeft(a, b Watch) int { return first(b.Said != "", a.Said != "") }

func byConfirmed(a, b Watch) int { return first(a.Confirming, b.Confirming) }

// first puts what a claim holds for before what it does not hold for.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func byExcess(a, b Watch) int {
	return cmp.Compare(b.HeldBytes-b.WallBytes, a.HeldBytes-a.WallBytes)
}

func byPlace(a, b Watch) int {
	return cmp.Or(strings.Compare(a.Container, b.Container), strings.Compare(a.Device, b.Device))
}

func byDevice(a, b Sensor) int { return strings.Compare(a.Device, b.Device) }

func byMostHeld(a, b Process) int { return cmp.Compare(b.UsedBytes, a.UsedBytes) }

func byNewest(a, b Process) int { return cmp.Compare(b.Start, a.Start) }

func byHighestPID(a, b Process) int { return cmp.Compare(b.PID, a.PID) }
