package scenarios

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
)

// recommended reads recommendations as a case writes them.
func recommended(data []byte) (all []advice.Recommendation, err error) {
	var written []struct {
		Namespace, Kind, Name, Container string
		Verdict                          sizing.Verdict
		Hours                            float64
		SizesMiB                         map[string]int64
		SliceMiB                         int64
	}
	if err := yaml.UnmarshalStrict(data, &written); err != nil {
		return nil, err
	}
	for _, w := range written {
		if w.Namespace == "" {
			w.Namespace = Namespace
		}
		r := advice.Recommendation{Container: advice.Container{Namespace: w.Namespace, Owner: advice.Owner{Kind: w.Kind, Name: w.Name},
			Container: w.Container},
			Verdict: w.Verdict, Hours: w.Hours, Slice: api.MiB(w.SliceMiB)}
		for i, coverage := range advice.Coverages {
			r.Sizes[i] = api.MiB(w.SizesMiB[fmt.Sprint(coverage)])
		}
		all = append(all, r)
	}
	return all, nil
}

// book is the leader's document, as a replica reads it.
func (s Scenario) book() *advice.Book {
	texts, leftOut, err := advice.Encode(time.Now(), s.Recommended)
	if err == nil && leftOut > 0 {
		err = fmt.Errorf("%d recommendations cannot be", leftOut)
	}
	var book *advice.Book
	if err == nil {
		book, err = advice.Decode(texts)
	}
	if err != nil {
		panic("scenario " + s.Name + ": " + err.Error())
	}
	return book
}
