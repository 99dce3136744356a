package quantity

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// GPUs reads how many GPUs q requests: a whole count, or a fraction of one.
// The text was bounded before q was parsed (package rawpod), so comparing is cheap.
func GPUs(q resource.Quantity) (count int64, fraction Fraction, err error) {
	const accepted = "accepted: a whole number from 0 to 64, or a fraction of one GPU such as 0.25"
	if q.Sign() < 0 || q.CmpInt64(MaxGPUs) > 0 {
		return 0, Fraction{}, fmt.Errorf("%s is out of range; %s", message.Quote(q.String()), accepted)
	}
	milli := q.MilliValue()
	switch {
	case milli%1000 == 0:
		return milli / 1000, Fraction{}, nil
	case milli < 1000:
		return 0, reduceFraction(milli * 1000), nil
	}
	return 0, Fraction{}, fmt.Errorf("%s mixes whole GPUs and a fraction; %s", message.Quote(GPUText(q)), accepted)
}

// GPUText is a number of GPUs as people write it: "0.25", where Kubernetes has "250m".
func GPUText(q resource.Quantity) string {
	if milli := q.MilliValue(); milli > 0 && milli < MaxGPUs*1000 && milli%1000 != 0 {
		return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
	}
	return q.String()
}

// MaxGPUs is how many GPUs a container may request.
const MaxGPUs = 64

// MaxReplicas is how many units one device can have at most; the device plugin itself has no bound.
const MaxReplicas = 4096
