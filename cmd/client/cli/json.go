package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
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

// Place and Error are printed as they are read.
type (
	Place = problem.Place
	Error = problem.Error
)

// NonNil returns list, never nil: readers of JSON need not expect null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// PrintJSON prints a document for tools: indented, and without the escapes that HTML needs.
func PrintJSON(out io.Writer, document any) error {
	text, err := encode(document)
	if err != nil {
		return err
	}
	return printText(out, text)
}

// encode is a document as JSON. Control characters that JSON allows in text are escaped all the same: terminals act on them,
// and YAML does not allow them.
func encode(document any) (string, error) {
	var b, escaped strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return "", fmt.Errorf("%w: print the answer: %w", ErrInternal, err)
	}
	for _, r := range b.String() {
		if unicode.IsControl(r) && r != '\n' {
			fmt.Fprintf(&escaped, `\u%04x`, r)
			continue
		}
		escaped.WriteRune(r)
	}
	return escaped.String(), nil
}
