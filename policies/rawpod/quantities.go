package rawpod

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	kjson "sigs.k8s.io/json"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/internal/request"
)

// pod has the quantities of a pod, as they are written. Its types are named as the API's, since errors name them.
type pod struct {
	Spec podSpec `json:"spec"`
}

type podSpec struct {
	InitContainers      []container `json:"initContainers"`
	Containers          []container `json:"containers"`
	EphemeralContainers []container `json:"ephemeralContainers"`
	Resources           resources   `json:"resources"`
	Overhead            amounts     `json:"overhead"`
	Volumes             []volume    `json:"volumes"`
}

type container struct {
	Resources resources `json:"resources"`
	Env       []struct {
		ValueFrom resourceRef `json:"valueFrom"`
	} `json:"env"`
}

type resources struct {
	Limits   amounts `json:"limits"`
	Requests amounts `json:"requests"`
}

type amounts map[string]any

type volume struct {
	EmptyDir struct {
		SizeLimit any `json:"sizeLimit"`
	} `json:"emptyDir"`
	Ephemeral struct {
		VolumeClaimTemplate struct {
			Spec struct {
				Resources resources `json:"resources"`
			} `json:"spec"`
		} `json:"volumeClaimTemplate"`
	} `json:"ephemeral"`
	DownwardAPI downwardAPI `json:"downwardAPI"`
	Projected   struct {
		Sources []struct {
			DownwardAPI downwardAPI `json:"downwardAPI"`
		} `json:"sources"`
	} `json:"projected"`
}

type downwardAPI struct {
	Items []resourceRef `json:"items"`
}

type resourceRef struct {
	ResourceFieldRef struct {
		Divisor any `json:"divisor"`
	} `json:"resourceFieldRef"`
}

// checkQuantities looks at the text of every quantity in the spec of a pod's JSON: "1e10000000" is short, valid and takes seconds
// to compare, and a long one takes seconds to print.
func checkQuantities(raw []byte) (*api.Violation, error) {
	var p *pod
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &p); err != nil {
		return nil, fmt.Errorf("read pod: %w", err)
	}
	if p == nil {
		return nil, errors.New("read pod: it is null")
	}
	return costlyIn(reflect.ValueOf(p.Spec), "spec"), nil
}

// costlyIn finds a quantity that is not read.
func costlyIn(v reflect.Value, path string) *api.Violation {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if found := costlyIn(v.Field(i), path+"."+v.Type().Field(i).Tag.Get("json")); found != nil {
				return found
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if found := costlyIn(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); found != nil {
				return found
			}
		}
	case reflect.Map:
		all := v.Interface().(amounts)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if found := checkQuantity(all[name], fmt.Sprintf("%s[%s]", path, message.Quote(name))); found != nil {
				found.Field = fmt.Sprintf("%s[%s]", path, name)
				return found
			}
		}
	case reflect.Interface:
		if !v.IsNil() {
			return checkQuantity(v.Interface(), path)
		}
	}
	return nil
}

func checkQuantity(q any, path string) *api.Violation {
	text := quantity.Text(q)
	if len(text) <= 2*quantity.MaxText && quantity.Cheap.MatchString(text) {
		return nil
	}
	return request.Invalid(path, "quantity", fmt.Sprintf(
		`%s: %s is not a quantity that is read; accepted: up to 40 characters such as "1", "500m" or "8Gi"`, path, message.Quote(text)))
}
