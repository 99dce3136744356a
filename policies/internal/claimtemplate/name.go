package claimtemplate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/resourcename"
)

// Template is what each container that names the claim gets, and what the claim takes of its devices.
type Template struct {
	Class  string       // DeviceClass
	Memory quantity.MiB // of each device
	Of     quantity.MiB // memory of the device, where a value that depends on it is injected; 0: any device
	Count  int          // devices, each another; more than one of NVIDIA's driver alone
	Share  bool         // take one of the capacity "shares", where the driver publishes it: what a claim does not name, it takes all of
	First  string       // MIG profile of which an instance is taken instead, where one is free; "": none is
}

// Prefix begins the names of templates.
const Prefix = "gpuslice-"

// maxMemory has as many digits as the API server reads exactly.
const maxMemory = quantity.MiB(99_999_999)

// pattern of names: gpuslice-4396mi, gpuslice-1g.10gb-or-4396mi, gpuslice-2x20480mi-of-81920mi-share-from-memory.example.com.
var pattern = regexp.MustCompile(`^gpuslice-(?:([1-9]g[.][1-9][0-9]{0,2}gb)-or-)?(?:([1-9][0-9]?)x)?([1-9][0-9]{0,7})mi(?:-of-([1-9][0-9]{0,7})mi)?(-share)?(?:-from-(.+))?$`)

// profiles are the MIG profiles of which an instance may come first: those without extras.
var profiles = regexp.MustCompile(`^[1-9]g[.][1-9][0-9]{0,2}gb$`)

// Name is the name of the template. Whatever is usual is left out.
func (t Template) Name() string {
	var b strings.Builder
	b.WriteString(Prefix)
	if t.First != "" {
		b.WriteString(t.First + "-or-")
	}
	if t.Count != 1 {
		fmt.Fprintf(&b, "%dx", t.Count)
	}
	fmt.Fprintf(&b, "%dmi", t.Memory)
	if t.Of != 0 {
		fmt.Fprintf(&b, "-of-%dmi", t.Of)
	}
	if t.Share {
		b.WriteString("-share")
	}
	if t.Class != resourcename.NVIDIADriver {
		b.WriteString("-from-" + t.Class)
	}
	return b.String()
}

// Parse is the template of a name. It accepts what Name returns of a valid template, and nothing else.
func Parse(name string) (Template, error) {
	part := pattern.FindStringSubmatch(name)
	if part == nil {
		return Template{}, fmt.Errorf("%.260q does not name a template of gpuslice: these are like %q", name, Prefix+"4396mi")
	}
	t := Template{Class: resourcename.NVIDIADriver, Memory: mib(part[3]), Of: mib(part[4]), Count: 1, Share: part[5] != "", First: part[1]}
	if part[2] != "" {
		t.Count, _ = strconv.Atoi(part[2]) // the pattern has digits
	}
	if part[6] != "" {
		t.Class = part[6]
	}
	if err := t.Validate(); err != nil {
		return Template{}, err
	}
	if t.Name() != name {
		return Template{}, fmt.Errorf("%q does not name a template of gpuslice: its content has the name %q", name, t.Name())
	}
	return t, nil
}

// mib is the number that digits of a pattern say, 0 where there are none.
func mib(digits string) quantity.MiB {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return quantity.MiB(n)
}

// Takes reports whether a claim may take an instance of the MIG profile first.
func Takes(profile string) bool { return profiles.MatchString(profile) }

// Validate reports what no claim can ask for.
func (t Template) Validate() error {
	switch {
	case t.Memory < 1 || t.Memory > maxMemory:
		return fmt.Errorf("a claim of %dMi: accepted are 1Mi to %s", t.Memory, maxMemory)
	case t.Of != 0 && (t.Of < t.Memory || t.Of > maxMemory):
		return fmt.Errorf("a claim of %s of a device of %s", t.Memory, t.Of)
	case t.Count < 1 || t.Count > resourcev1.AllocationResultsMaxSize:
		return fmt.Errorf("a claim of %d devices: accepted are 1 to %d", t.Count, resourcev1.AllocationResultsMaxSize)
	case t.Count > 1 && t.Class != resourcename.NVIDIADriver:
		return fmt.Errorf("a claim of %d devices of class %q: only of class %s it is known how to tell devices apart", t.Count, t.Class, resourcename.NVIDIADriver)
	case t.First != "" && (!Takes(t.First) || t.Class != resourcename.NVIDIADriver || t.Count != 1 || t.Of != 0):
		return fmt.Errorf("a claim of an instance of %.40q, or of %s of a device: accepted are profiles like 1g.10gb, and one device of class %s of any size", t.First, t.Memory, resourcename.NVIDIADriver)
	}
	for _, text := range []string{t.Class, t.Name()} {
		if problems := validation.IsDNS1123Subdomain(text); len(problems) > 0 {
			return fmt.Errorf("%.260q: %s", text, problems[0])
		}
	}
	return nil
}
