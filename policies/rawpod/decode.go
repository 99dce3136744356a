// Package rawpod reads pods that clients wrote, within bounds.
package rawpod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Raw is a pod as it arrived: the typed pod, and the text that it was read from.
type Raw struct {
	Pod  *corev1.Pod
	Text []byte // JSON, which may hold fields that this build does not know
}

const (
	maxPodBytes = 4 << 20
	// largePod is the size from which a pod is counted before it is decoded: three megabytes of empty objects take
	// gigabytes as typed values.
	largePod    = 256 << 10
	maxElements = 20_000
	// maxName bounds what messages repeat for each entry of a container. The API server, which validates names after
	// webhooks, accepts 63 bytes.
	maxName = 253
)

// Decode reads a pod's JSON. A pod that is too large, or holds quantities that are costly to parse, is a Violation; any
// other document is an error. Bounds are checked before anything is parsed into types. Keys are case-sensitive, as the
// API server reads them.
func Decode(raw []byte) (Raw, *api.Violation, error) {
	if len(raw) > maxPodBytes {
		return Raw{}, sizeViolation("the pod has %d bytes; at most %d are read", len(raw), maxPodBytes), nil
	}
	if len(raw) > largePod {
		n, managed, err := countElements(raw)
		if err != nil {
			return Raw{}, nil, fmt.Errorf("read pod: %w", err)
		}
		if managed.to > 0 { // it has an object for each annotation, and no decision depends on it
			raw = slices.Concat(raw[:managed.from], []byte("[]"), raw[managed.to:])
		}
		if n > maxElements {
			return Raw{}, sizeViolation("the pod has more than %d objects and lists", maxElements), nil
		}
	}
	if !bytes.HasPrefix(raw, []byte("{")) || !quantity.AllCheap(raw) {
		if v, err := checkQuantities(raw); v != nil || err != nil {
			return Raw{}, v, err
		}
	}
	pod := new(corev1.Pod)
	if jsonv2.Unmarshal(raw, pod) != nil { // as the API server reads it, in half of the time
		// The API server's decoder has its own reading of repeated names and invalid UTF-8. Its errors are the same each
		// time.
		pod = new(corev1.Pod)
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, pod); err != nil {
			if v, _ := checkQuantities(raw); v != nil { // it names the quantity that is none
				return Raw{}, v, nil
			}
			return Raw{}, nil, fmt.Errorf("read pod: %w", err)
		}
	}
	for c := range podspec.EveryContainer(&pod.Spec) {
		if len(c.Name) > maxName {
			return Raw{}, sizeViolation("the name of a container has %d bytes; at most %d are read", len(c.Name), maxName), nil
		}
	}
	return Raw{Pod: pod, Text: raw}, nil, nil
}

func sizeViolation(format string, args ...any) *api.Violation {
	return &api.Violation{Rule: api.RuleSize, Reason: "the pod is too large", Field: "spec", Detail: fmt.Sprintf(format, args...)}
}

// span is a part of a text.
type span struct{ from, to int64 }

// countElements counts objects and lists without building them, and stops where there are too many. It leaves out
// metadata.managedFields, and returns where that is.
func countElements(raw []byte) (n int, managed span, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	const inMetadata = 2
	for depth := 0; ; {
		t, err := d.Token()
		switch {
		case err == io.EOF:
			return n, managed, nil
		case err != nil:
			return n, managed, err
		case depth == inMetadata && t == "managedFields" && d.More() && managed.to == 0:
			if managed, err = skipValue(d, raw); err != nil {
				return n, managed, err
			}
		case t == json.Delim('{') || t == json.Delim('['):
			depth++
			if n++; n > maxElements {
				return n, managed, nil
			}
		case t == json.Delim('}') || t == json.Delim(']'):
			depth--
		}
	}
}

// skipValue reads past a list, the value of the key that was read last. Of another value it reads nothing.
func skipValue(d *json.Decoder, raw []byte) (span, error) {
	from := d.InputOffset()
	for from < int64(len(raw)) && bytes.IndexByte([]byte(": \t\r\n"), raw[from]) >= 0 {
		from++
	}
	if from == int64(len(raw)) || raw[from] != '[' {
		return span{}, nil
	}
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return span{}, err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return span{from, d.InputOffset()}, nil
		}
	}
}
