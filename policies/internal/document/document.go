package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// Bounds that are checked before a document is understood.
const (
	// MaxBytes lets the last good versions of a cluster's policies fit into one ConfigMap.
	MaxBytes    = 64 << 10
	maxDepth    = 16  // levels of nesting; the deepest field of a policy lies at the eighth
	maxRepeated = 200 // bytes of a value that a message repeats
	// MaxProblems are reported of one document.
	MaxProblems = 64
)

// Read parses the one YAML (or JSON) document in data into its tree, and rejects constructs that nobody needs: anchors
// and aliases, with which a few bytes become gigabytes, tags, deep nesting and further documents. accepted describes
// the expected document.
func Read(data []byte, accepted string) (*yaml.Node, *field.Error) {
	if problem := checkText(data, accepted); problem != nil {
		return nil, problem
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, next yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, Problem("the document is empty; accepted: " + accepted)
	} else if err != nil {
		return nil, Problem(syntax(data, err))
	}
	if err := decoder.Decode(&next); err == nil {
		return nil, Problem(fmt.Sprintf("a second document begins at line %d; accepted: one", next.Line))
	} else if !errors.Is(err, io.EOF) {
		return nil, Problem(syntax(data, err))
	}
	if problem := checkTree(&root, 0); problem != nil {
		return nil, problem
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return nil, Problem(fmt.Sprintf("the document is a %s; accepted: %s", kindOf(root.Content[0]), accepted))
	}
	return root.Content[0], nil
}

// Shorten cuts a value that a message repeats.
func Shorten(value string) string { return shorten.Text(value, maxRepeated) }

// Problem is a problem of the document as a whole.
func Problem(detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: api.PolicyKey, BadValue: field.OmitValueType{}, Detail: detail}
}

func checkText(data []byte, accepted string) *field.Error {
	switch {
	case len(data) > MaxBytes:
		return Problem(fmt.Sprintf("the document has %d bytes; accepted: at most %d", len(data), MaxBytes))
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")), bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return Problem("the document begins with a byte order mark; save it as UTF-8 without one")
	case !utf8.Valid(data):
		return Problem("the document is not UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		return Problem("the document is empty; accepted: " + accepted)
	}
	return nil
}

// syntax describes a parser's error. It names tabs, which the parser does not.
func syntax(data []byte, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if indent := line[:len(line)-len(bytes.TrimLeft(line, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return fmt.Sprintf("line %d is indented with a tab; use spaces (%s)", number, Shorten(text))
		}
	}
	return "not YAML: " + Shorten(text)
}

func checkTree(n *yaml.Node, depth int) *field.Error {
	switch {
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return Problem(fmt.Sprintf("line %d uses an anchor or alias; write the value out", n.Line))
	case n.Style&yaml.TaggedStyle != 0:
		return Problem(fmt.Sprintf("line %d uses the tag %s; leave it out", n.Line, message.Quote(n.Tag)))
	case depth > maxDepth:
		return Problem(fmt.Sprintf("line %d is nested more than %d levels deep", n.Line, maxDepth))
	}
	for _, child := range n.Content {
		if problem := checkTree(child, depth+1); problem != nil {
			return problem
		}
	}
	return nil
}
