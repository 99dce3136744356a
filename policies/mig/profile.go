// Package mig reads the names of MIG profiles.
package mig

import (
	"regexp"
	"strconv"
)

// Profile describes an instance by the name of its MIG profile.
type Profile struct {
	Compute    int    // compute slices of one compute instance: 1 of "1c.2g.10gb"; 0: it has all of the instance's
	Slices     int    // compute slices of the instance: 2 of "2g.10gb"
	Gigabytes  int    // memory of the instance, which has less usable: 10 of "2g.10gb"
	Attributes string // "+me", "+me.all", "-me", or ".me" as resources are named; "": none
}

// pattern is that of NVIDIA's mig-parted, and of the device plugin's resources.
var pattern = regexp.MustCompile(`^(?:([1-9])c\.)?([1-9])g\.([1-9][0-9]{0,3})gb((?:[.+-][a-z]+)*)$`)

// Parse reads the name of a profile: "1g.10gb", "1c.2g.10gb", "1g.10gb+me", "1g.10gb.me". It returns false for any other text.
func Parse(name string) (Profile, bool) {
	read := pattern.FindStringSubmatch(name)
	if read == nil {
		return Profile{}, false
	}
	number := func(digits string) int {
		n, _ := strconv.Atoi(digits) // the pattern has at most four digits; none: 0
		return n
	}
	return Profile{Compute: number(read[1]), Slices: number(read[2]), Gigabytes: number(read[3]), Attributes: read[4]}, true
}

// resource is how the name of an extended resource ends after "nvidia.com/mig-". The device plugin's configuration may give it a name
// that is no profile, such as "small".
var resource = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,30}[a-z0-9]$`)

// NamesResource reports whether an extended resource can be named by the profile, or by its name in the device plugin's
// configuration. NVIDIA's device plugin writes "." for "+".
func NamesResource(name string) bool { return resource.MatchString(name) }
