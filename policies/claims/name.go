package claims

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/mig"
)

// Template is one container's part of a claim, and the claim's part of its devices.
type Template struct {
	Class  string       // DeviceClass
	Memory quantity.MiB // of each device
	Of     quantity.MiB // memory of the device, where a value that depends on it is injected; 0: any device
	Count  int          // devices, each another; more than one of NVIDIA's driver alone
	// take one of the capacity "shares", if the driver publishes it: a claim takes all of any capacity that it does not name
	Share     bool
	Preferred string // MIG profile of which an instance is taken instead, where one is free; "": none is
}

// Prefix begins the names of templates.
const Prefix = "gpuslice-"

// maxMemory has as many digits as the API server reads exactly.
const maxMemory = quantity.MiB(99_999_999)

// pattern of names: gpuslice-4396mi, gpuslice-1g.10gb-or-4396mi, gpuslice-2x20480mi-of-81920mi-share-from-memory.example.com.
var pattern = regexp.MustCompile(
	`^gpuslice-(?:([0-9a-z.]+)-or-)?(?:([1-9][0-9]?)x)?([1-9][0-9]{0,7})mi(?:-of-([1-9][0-9]{0,7})mi)?(-share)?(?:-from-(.+))?$`)

// Name is the name of the template. Whatever is usual is left out.
func (t Template) Name() string {
	var b strings.Builder
	b.WriteString(Prefix)
	if t.Preferred != "" {
		b.WriteString(t.Preferred + "-or-")
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
	if t.Class != nvidia.DRADriver {
		b.WriteString("-from-" + t.Class)
	}
	return b.String()
}

// Parse returns the template of a name. It accepts names that Name returns for a valid template, and no others.
func Parse(name string) (Template, error) {
	part := pattern.FindStringSubmatch(name)
	if part == nil {
		return Template{}, fmt.Errorf("%.260q does not name a template of gpuslice: these are like %q", name, Prefix+"4396mi")
	}
	t := Template{Class: nvidia.DRADriver, Memory: mib(part[3]), Of: mib(part[4]), Count: 1, Share: part[5] != "", Preferred: part[1]}
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

// maxGigabytes has as many digits as the admission policy of claims accepts.
const maxGigabytes = 999

// Takes reports whether a claim may take an instance of the MIG profile first: of one without extras.
func Takes(profile string) bool {
	p, ok := mig.Parse(profile)
	return ok && p.Compute == 0 && p.Attributes == "" && p.Gigabytes <= maxGigabytes
}

// Validate reports requests that no claim can hold.
func (t Template) Validate() error {
	switch {
	case t.Memory < 1 || t.Memory > maxMemory:
		return fmt.Errorf("a claim of %dMi: accepted are 1Mi to %s", t.Memory, maxMemory)
	case t.Of != 0 && (t.Of < t.Memory || t.Of > maxMemory):
		return fmt.Errorf("a claim of %s of a device of %s", t.Memory, t.Of)
	case t.Count < 1 || t.Count > resourcev1.AllocationResultsMaxSize:
		return fmt.Errorf("a claim of %d devices: accepted are 1 to %d", t.Count, resourcev1.AllocationResultsMaxSize)
	case t.Count > 1 && t.Class != nvidia.DRADriver:
		return fmt.Errorf("a claim of %d devices of class %q: only of class %s it is known how to tell devices apart",
			t.Count, t.Class, nvidia.DRADriver)
	case t.Preferred != "" && (!Takes(t.Preferred) || t.Class != nvidia.DRADriver || t.Count != 1 || t.Of != 0):
		return fmt.Errorf(
			"a claim of an instance of %.40q, or of %s of a device: accepted are profiles like 1g.10gb, and one device of class %s of any size",
			t.Preferred, t.Memory, nvidia.DRADriver)
	}
	for _, text := range []string{t.Class, t.Name()} {
		if problems := validation.IsDNS1123Subdomain(text); len(problems) > 0 {
			return fmt.Errorf("%.260q: %s", text, problems[0])
		}
	}
	return nil
}
