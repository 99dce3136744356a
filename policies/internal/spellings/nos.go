package spellings

import "strings"

// The resources of nos hold their size: nvidia.com/gpu-10gb.
const (
	nosPrefix = "nvidia.com/gpu-"
	nosSuffix = "gb"
)

func nos() Spelling {
	return Spelling{
		Name: "nos", System: "nos", Doc: "nvidia.com/gpu-10gb: 1 means 10 GiB of one GPU",
		Sized: map[string]sized{nosPrefix: func(rest string, v value, into *collected) error {
			if err := mebibytes(1024)(value{text: strings.TrimSuffix(rest, nosSuffix)}, into); err != nil {
				return err
			}
			_, err := v.whole("slices", 1)
			return err
		}},
	}
}
