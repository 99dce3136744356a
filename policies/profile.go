package policies

// ProfileView is what a framework sees of the device's memory.
type ProfileView string

// The views.
const (
	ProfileViewWhole       ProfileView = "whole"
	ProfileViewLimitedFree ProfileView = "limited-free"
	ProfileViewSliced      ProfileView = "sliced"
	ProfileViewUnknown     ProfileView = "unknown"
)

// ProfileSwitch is what policy may say about one profile.
type ProfileSwitch struct {
	Enabled *bool `json:"enabled,omitempty"`
}
