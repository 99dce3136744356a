package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// outputVersion is the version of everything that -o json prints.
const outputVersion = config.APIVersion

// listing is the frame of -o json.
type listing[T any] struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []T            `json:"items"`
	Errors     []errorPrinted `json:"errors"`
}

// place says where an object stands in the input.
type place struct {
	Source   string `json:"source"`
	Document int    `json:"document,omitempty"` // from 1
	Item     int    `json:"item,omitempty"`     // of a list, from 1
}

// errorPrinted is a document that could not be answered.
type errorPrinted struct {
	place
	Message string `json:"message"`
}

// verdict is the part that render and explain have in common.
type verdict struct {
	place
	Kind       string                 `json:"kind"`
	Namespace  string                 `json:"namespace,omitempty"`
	Name       string                 `json:"name"`
	Outcome    policies.Outcome       `json:"outcome"`
	Would      policies.Outcome       `json:"would"`
	Mode       config.EnforcementMode `json:"mode,omitempty"`
	Policy     string                 `json:"policy,omitempty"`
	Reason     string                 `json:"reason"`
	Violations []api.Violation        `json:"violations"`
	Warnings   []string               `json:"warnings"`
}

// rendered is an item of render -o json.
type rendered struct {
	verdict
	Object json.RawMessage `json:"object"` // null: refused
}

func renderList(a *answers) listing[rendered] {
	list := listing[rendered]{APIVersion: outputVersion, Kind: "RenderList", Items: []rendered{}, Errors: errorsPrinted(a.errors)}
	for _, r := range a.results {
		list.Items = append(list.Items, rendered{r.verdict(), r.after})
	}
	return list
}

func (r result) verdict() verdict {
	d := r.decision
	return verdict{
		place: r.at.place(), Kind: r.kind, Namespace: r.namespace, Name: r.name,
		Outcome: d.Outcome, Would: d.Would, Mode: d.Mode, Policy: d.Policy, Reason: d.Reason(),
		Violations: listOf(d.Violations), Warnings: listOf(d.Warnings),
	}
}

func (s source) place() place { return place{Source: s.file, Document: s.document, Item: s.item} }

func errorsPrinted(errors []documentError) []errorPrinted {
	printed := []errorPrinted{}
	for _, e := range errors {
		printed = append(printed, errorPrinted{e.at.place(), e.err.Error()})
	}
	return printed
}

// listOf is list, never null: whoever reads JSON need not ask.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// printJSON prints a document for tools: indented, and without the escapes that HTML needs.
func printJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}
