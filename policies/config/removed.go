package config

// What to write in the place of fields that builds before v0.1.0 read.

// Removed implements the decoder's former.
func (*Policy) Removed() map[string]string {
	return map[string]string{"sizing": "leave it out: gpuslice recommend names the workloads that should have another size"}
}

// Removed implements the decoder's former.
func (*SliceSpec) Removed() map[string]string {
	return map[string]string{"fromHistory": "write memory, and take the sizes of workloads from gpuslice recommend -o patch"}
}

// Removed implements the decoder's former.
func (*minimumSpec) Removed() map[string]string {
	return map[string]string{"proven": "leave it out, and run gpuslice verify --on-gpu to see what holds a slice on a GPU"}
}
