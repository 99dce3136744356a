package guard

// Utilization is how busy one process kept a device. It carries a PID for a
// metric's sake: a driver may hand out another namespace's PIDs here, so that it
// is no Process and nothing can be signaled by it.
type Utilization struct {
	Device  string
	PID     int
	Percent int // of the multiprocessors
}

// Activity is the work of one device since the last reading.
type Activity struct {
	Device string
	// Complete: every process that ran is in Ran. The device reports it for each
	// process, and lists each of those that it reports.
	Complete     bool
	Ran          map[int]bool // by PID
	Utilizations []Utilization
	// Sampled are the processes of which the driver has something to say, by PID: 0
	// percent of one that ran for a moment, too.
	Sampled map[int]bool
}
