package guard

import (
	"testing"
	"time"
)

// What others share is not certain for a container, whether they are of its pod or not.
func TestEvaluateDoubt(t *testing.T) {
	t.Parallel()
	at := func(after time.Duration, used, elsewhere int64, moving bool) reading {
		r := trusted(python(214, 7), python(215, 7))
		r.Listed, r.UsedBytes, r.Moving = epoch.Add(after), used*gib, moving
		r.DoubleCounted = elsewhere * gib
		if elsewhere > 0 { // by two processes of another pod
			r.Everyone = append(r.Processes, python(300, 10), python(301, 10))
		}
		return r
	}
	for name, tc := range map[string]struct {
		shared   int64 // GiB
		readings []reading
		want     int // reports
		doubted  bool
	}{
		"nothing is shared": {0, []reading{at(0, 60, 0, false), at(time.Minute, 60, 0, false)}, 0, false},
		"for a moment":      {7, []reading{at(0, 60, 0, false)}, 0, false},
		"for long": {7, []reading{at(0, 60, 0, false), at(doubtPeriod, 60, 0, false), at(time.Minute, 60, 0, false)},
			1, true},
		"list and total moved": {7, []reading{at(0, 60, 0, false), at(doubtPeriod, 60, 0, true)}, 0, false},
		"they move on and on": {7, []reading{at(0, 60, 0, false), at(doubtPeriod, 60, 0, true), at(movingDoubtPeriod, 60, 0, true)},
			1, true},
		"they moved before the doubt":       {7, []reading{at(0, 60, 0, true), at(movingDoubtPeriod, 60, 0, true)}, 0, false},
		"certain":                           {7, []reading{at(0, 7, 0, false), at(time.Minute, 7, 0, false)}, 0, false},
		"certain of all but what is within": {7, []reading{at(0, 8, 0, false), at(time.Minute, 8, 0, false)}, 0, false},
		"certain of too little":             {7, []reading{at(0, 9, 0, false), at(time.Minute, 9, 0, false)}, 1, true},
		"beside others who share as much":   {7, []reading{at(0, 21, 7, false), at(time.Minute, 21, 7, false)}, 0, false},
		"certain by what others share":      {7, []reading{at(0, 28, 6, false), at(time.Minute, 28, 6, false)}, 1, true},
		"certain in the end": {7,
			[]reading{at(0, 60, 0, false), at(time.Minute, 60, 0, false), at(2*time.Minute, 7, 0, false)}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := Usage{Container: "trainer", Device: "gpu0", DoubleCountedBytes: tc.shared * gib,
				UsedBytes: (14 - tc.shared) * gib, LimitBytes: 8 * gib}
			if tc.shared == 0 {
				u.UsedBytes = 7 * gib
			}
			reports := 0
			for _, r := range tc.readings {
				var events []Event
				u, events = u.evaluateDoubt(r)
				reports += len(events)
			}
			equal(t, "reports", reports, tc.want)
			equal(t, "it stands", u.Doubted, tc.doubted)
		})
	}
	u := Usage{Container: "trainer", Device: "gpu0", DoubleCountedBytes: 7 * gib, UsedBytes: 7 * gib, LimitBytes: 8 * gib}
	u, _ = u.evaluateDoubt(at(0, 60, 0, false))
	u.UsedBytes = 9 * gib // for less than its grace period
	u, early := u.evaluateDoubt(at(doubtPeriod/2, 60, 0, false))
	u.UsedBytes = 7 * gib
	_, late := u.evaluateDoubt(at(doubtPeriod, 60, 0, false))
	equal(t, "reports while it is over its limit, and once it is not", [2]int{len(early), len(late)}, [2]int{0, 1})
	own := Usage{Container: "trainer", Device: "gpu0", DoubleCountedBytes: 1}
	beside := trusted().beside([]Usage{own, {Container: "scorer", Device: "gpu0", DoubleCountedBytes: 2},
		{Container: "scorer", Device: "gpu1", DoubleCountedBytes: 4}}, own)
	equal(t, "what others of the pod share", beside.DoubleCounted, int64(2))
}
