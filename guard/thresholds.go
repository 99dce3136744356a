package guard

import "time"

const (
	failureThreshold = 3                // failing readings before a device is unreliable
	successThreshold = 3                // good readings in a row before it is reliable again
	warnAfter        = 2                // samples near the limit before the owner is warned
	belowMargin      = 5                // points below the warning threshold that count as clearly below
	belowPeriod      = 5 * time.Second  // clearly below for this long re-arms the warning
	finalSamples     = 4                // before the signal, at most: one that finds the target still over its limit is enough
	releasePeriod    = 15 * time.Second // a terminated process's memory should be released by then
	drainFactor      = 10               // a container's time over its limit is forgotten this many times as slowly as it adds up
	fullPercent      = 99               // percent of a device in use, from which an allocation fails for want of room
)
