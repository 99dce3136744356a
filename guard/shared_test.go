package guard

import "testing"

func TestSharedBytes(t *testing.T) {
	t.Parallel()
	before := Usage{ListedBytes: 6 * gib, SharedBytes: 2 * gib}
	for name, tc := range map[string]struct {
		listed, largest, moved int64 // GiB
		change                 func(*reading)
		want                   int64
	}{
		"nothing moves":                           {6, 3, 0, nil, 2},
		"an allocation":                           {9, 5, 3, nil, 2},
		"a mapping":                               {9, 5, 0, nil, 4}, // no more than all but the largest
		"a mapping and an allocation":             {10, 3, 3, nil, 3},
		"an allocation while a neighbor frees":    {8, 3, -5, nil, 4},
		"an allocation while a neighbor does":     {8, 3, 9, nil, 2},
		"the end of a mapping":                    {4, 2, 0, nil, 0},
		"memory is freed":                         {4, 2, -2, nil, 2},
		"memory is freed and a neighbor takes it": {5, 2, 0, nil, 1},
		"one process is left":                     {3, 3, -3, nil, 0},
		"list and total do not belong together":   {9, 5, 0, func(r *reading) { r.Moving = true }, 2},
		"the list cannot be trusted":              {9, 5, 0, func(r *reading) { r.trusted = false }, 2},
		"the first list":                          {9, 5, 0, func(r *reading) { r.before.SettledBytes = 0 }, 2},
		"a device that does not report its total": {9, 5, 0, func(r *reading) { r.UsedBytes = 0 }, 2},
	} {
		r := trusted()
		r.before.SettledBytes, r.UsedBytes = 40*gib, (40+tc.moved)*gib
		if tc.change != nil {
			tc.change(&r)
		}
		equal(t, name, before.sharedBytes(r, tc.listed*gib, tc.largest*gib), tc.want*gib)
	}
}
