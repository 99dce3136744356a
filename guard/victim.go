package guard

import "cmp"

// byUrgency is the order in which containers over their limit are acted on: one
// whose termination is possible, then one that was confirmed, then the largest
// excess, then by place.
func byUrgency(a, b Usage) int {
	return cmp.Or(
		first(a.Reported == "", b.Reported == ""),
		first(a.Confirming, b.Confirming),
		cmp.Compare(b.UsedBytes-b.LimitBytes, a.UsedBytes-a.LimitBytes),
		byPlace(a, b),
	)
}

// byCost is the order in which the processes of a container are terminated: the
// one that uses most, then the newest, which has the least work to lose, then the
// highest PID.
func byCost(a, b Process) int {
	return cmp.Or(cmp.Compare(b.UsedBytes, a.UsedBytes), cmp.Compare(b.Start, a.Start), cmp.Compare(b.PID, a.PID))
}

// first puts items for which a claim is true before others.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
