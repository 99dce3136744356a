package resourcename

import "regexp"

// MIGProfile is how a MIG profile is spelt in the name of a resource.
var MIGProfile = regexp.MustCompile(`^[a-z0-9][a-z0-9.]{0,30}[a-z0-9]$`)
