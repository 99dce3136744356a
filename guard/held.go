package guard

import "slices"

// NotHeld describes how the pod may exceed its slices while the guard can enforce
// them, or is an empty text.
func (s State) NotHeld() string {
	for _, o := range s.Orphaned {
		if o.Reported {
			return o.event().Message()
		}
	}
	for _, u := range s.Usages {
		switch {
		case u.Reported != "":
			return u.notTerminated(u.Reported).Message()
		case u.Doubted:
			return u.doubt().Message()
		case u.UsedBytes > 0 && u.Container != UnnamedContainer && slices.Contains(s.Unmanaged, u.Container):
			return Event{Kind: Unmanaged, Container: u.Container, Device: u.Device, UsedBytes: u.UsedBytes, Process: largest(u.Processes)}.Message()
		}
	}
	return ""
}

// largest returns the process that uses most, and the zero value of none.
func largest(ps []Process) Process {
	if len(ps) == 0 {
		return Process{}
	}
	return slices.MinFunc(ps, byCost)
}
