package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/gpuslice/gpuslice/policies/config"
)

// List is the frame of -o json.
type List[T any] struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Items      []T     `json:"items"`
	Errors     []Error `json:"errors"`
}

// NewList returns a list of a kind.
func NewList[T any](kind string, items []T, errors ...Error) List[T] {
	return List[T]{APIVersion: config.APIVersion, Kind: kind, Items: NonNil(items), Errors: NonNil(errors)}
}

// Place is where an object stands in the input.
type Place struct {
	Source   string `json:"source"`
	Document int    `json:"document,omitempty"` // from 1
	Item     int    `json:"item,omitempty"`     // of a list, from 1
}

// Error is a document that could not be answered.
type Error struct {
	Place
	Message string `json:"message"`
}

// NonNil returns list, never nil: readers of JSON need not expect null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// PrintJSON prints a document for tools: indented, and without the escapes that HTML needs.
func PrintJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}
