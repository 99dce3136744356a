package spellings

import (
	"errors"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// kubeShare reads shares of compute; the same share is of memory where no amount is named.
func kubeShare() Spelling {
	return Spelling{
		Name: "kubeshare", System: "KubeShare", Doc: "label sharedgpu/gpu_mem means bytes, sharedgpu/gpu_request and gpu_limit shares of compute",
		Words: map[string]reading{
			"sharedgpu/gpu_mem": bytes,
			"sharedgpu/gpu_request": func(v value, into *collected) error {
				into.request = v.text
				return nil
			},
			"sharedgpu/gpu_limit": func(v value, into *collected) error {
				into.limit = v.text
				return nil
			},
		},
		Schedulers: []string{"kubeshare-scheduler"},
		complete:   shareOfCompute,
	}
}

// shareOfCompute is the limit as hundredths of compute, and the request as a share of memory where there is no amount.
func shareOfCompute(c *collected) error {
	if c.request != "" {
		f, err := quantity.ParseFraction(c.request)
		if err != nil {
			return err
		}
		if c.Size.Memory == 0 {
			c.Size.Fraction = f
		}
	}
	if c.limit == "" {
		return nil
	}
	f, err := quantity.ParseFraction(c.limit)
	if err != nil {
		return err
	}
	if c.cores = oneDevice * f.Num / f.Den; c.cores == 0 {
		return errors.New("the limit is less than a hundredth of compute")
	}
	return nil
}
