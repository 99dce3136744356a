package guard

// Sightings keeps whom the devices list under each PID, for as long as they list
// it without a break. A driver lists who allocated memory for as long as somebody
// holds it, after an exit too, and the kernel gives the PID to another process
// meanwhile. At is where a process belongs, its zero value nowhere. The zero
// value has seen nothing.
type Sightings[At comparable] struct {
	seen map[string]map[int]sighting[At]
}

// sighting is the process that a device listed under a PID first. The zero value
// is one that cannot be known.
type sighting[At comparable] struct {
	start uint64
	at    At
}

// Sighted is one entry of a device's list. At is where its memory belongs. Where
// that is nowhere, Was is where the process belonged that was listed first, and Has
// where the process belongs that has its PID by now.
type Sighted[At comparable] struct {
	Process
	At, Was, Has At
}

// Identify returns the processes in a device's list; name returns a PID's process
// at present, and its place. Only a process that began before the list, and has
// been there since the PID was listed first, is the one that the device means. A
// list that could not be read is no break.
func (s *Sightings[At]) Identify(d Device, name func(Process) (Process, At)) []Sighted[At] {
	if d.Fault != "" {
		return nil
	}
	if s.seen == nil {
		s.seen = map[string]map[int]sighting[At]{}
	}
	before, now := s.seen[d.ID], map[int]sighting[At]{}
	all := make([]Sighted[At], 0, len(d.Processes))
	for _, listed := range d.Processes {
		named, at := name(listed)
		first, known := before[listed.PID]
		if !known && named.Start != 0 && named.Start >= d.AsOf { // it may have begun while the list was made: the next list decides
			all = append(all, first.identify(named, at))
			continue
		}
		if !known && named.Start != 0 {
			first = sighting[At]{named.Start, at}
		}
		now[listed.PID] = first
		all = append(all, first.identify(named, at))
	}
	s.seen[d.ID] = now
	return all
}

func (first sighting[At]) identify(p Process, at At) Sighted[At] {
	var nowhere At
	// A reused PID has another start: the memory that the driver lists was the former process's.
	if p.Start != 0 && p.Start == first.start && at != nowhere {
		return Sighted[At]{Process: p, At: at}
	}
	return Sighted[At]{Process: p, Was: first.at, Has: at}
}
