package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Formats of -o beside "text" and "json", with kubectl's names.
const (
	Wide = "wide"
	YAML = "yaml"
	Name = "name"
	// JSONPath takes a template: -o jsonpath={.items[*].pod}.
	JSONPath = "jsonpath"
)

// Output is how a command prints its answer: -o and --no-headers.
type Output struct {
	Format    string
	NoHeaders bool
}

// Register registers -o for the formats "text", "json" and others, and --no-headers.
func (o *Output) Register(cmd *cobra.Command, others ...string) {
	OutputFlag(cmd, &o.Format, append(TextOrJSON(), others...))
	o.RegisterHeaders(cmd.Flags())
}

// RegisterHeaders registers --no-headers.
func (o *Output) RegisterHeaders(flags *pflag.FlagSet) {
	flags.BoolVar(&o.NoHeaders, "no-headers", false, "print tables without their headers")
}

// Answer is a command's output, in the form that each format takes.
type Answer struct {
	Document any          // for json, yaml and jsonpath
	Names    []string     // for name: KIND/NAME
	Page     func() *Page // for text and wide
}

// Names are the names of items for Answer.
func Names[T any](items []T, of func(T) string) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = of(item)
	}
	return names
}

// PodNames are the pods of items for Answer, each once: two namespaces may each have a pod of one name.
func PodNames[T any](items []T, of func(T) (namespace, pod string)) (names []string) {
	seen := map[string]bool{}
	for _, item := range items {
		namespace, pod := of(item)
		if key := namespace + "/" + pod; !seen[key] {
			seen[key] = true
			names = append(names, "pod/"+pod)
		}
	}
	return names
}

// Print prints an answer.
func (o *Output) Print(out io.Writer, a Answer) error {
	format, template, _ := strings.Cut(o.Format, "=")
	switch format {
	case "json":
		return PrintJSON(out, a.Document)
	case YAML:
		return printYAML(out, a.Document)
	case JSONPath:
		return printJSONPath(withoutEscapesOnTerminal(out), template, a.Document)
	case Name:
		return printText(withoutEscapesOnTerminal(out), strings.Join(append(slices.Clone(a.Names), ""), "\n"))
	}
	return a.Page().print(out, !o.NoHeaders)
}

// withoutEscapesOnTerminal leaves escapes out of others' text if out is a terminal. Another program gets all of it.
func withoutEscapesOnTerminal(out io.Writer) io.Writer {
	if Terminal(out) {
		return WithoutEscapes(out)
	}
	return out
}

// TextOrDocument are the formats of a command that prints text for people, or a document.
func TextOrDocument() []string { return append(TextOrJSON(), YAML, JSONPath) }

// IsDocument reports whether an accepted format is one of a document.
func IsDocument(format string) bool {
	name, _, _ := strings.Cut(format, "=")
	return slices.Contains([]string{"json", YAML, JSONPath}, name)
}

// PrintDocument prints a document in a format for which IsDocument is true.
func PrintDocument(out io.Writer, format string, document any) error {
	o := Output{Format: format}
	return o.Print(out, Answer{Document: document})
}

// PrintCSV prints rows of cells, none of which a spreadsheet takes for a formula.
func PrintCSV(out io.Writer, rows [][]string) error {
	for _, row := range rows {
		for n, cell := range row {
			first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(cell, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }))
			if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsRune("=+-@＝＋－＠", first) {
				row[n] = "'" + cell
			}
		}
	}
	if err := csv.NewWriter(out).WriteAll(rows); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

func printText(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

func printYAML(out io.Writer, document any) error {
	encoded, err := encode(document)
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML([]byte(encoded))
	if err != nil {
		return fmt.Errorf("%w: print the answer: %w", ErrInternal, err)
	}
	return printText(out, string(text))
}

// Objects prints objects as a stream of YAML documents.
type Objects struct {
	Out   io.Writer
	begun bool
}

// Print prints an object that is JSON.
func (o *Objects) Print(raw []byte) error {
	text, err := yaml.JSONToYAML(raw)
	if err != nil {
		return fmt.Errorf("%w: print an object: %w", ErrInternal, err)
	}
	if o.begun {
		text = append([]byte("---\n"), text...)
	}
	o.begun = true
	return printText(o.Out, string(text))
}

// PrintDiff prints a unified diff.
func (s Streams) PrintDiff(diff string) error { return printText(s.Out, PaintDiff(diff, s.Painter())) }

// parseJSONPath reads a template as kubectl does: a field that is not there prints nothing.
func parseJSONPath(text string) (*jsonpath.JSONPath, error) {
	template := jsonpath.New("-o jsonpath").AllowMissingKeys(true)
	if err := template.Parse(text); err != nil {
		return nil, fmt.Errorf("-o jsonpath: %w", err)
	}
	return template, nil
}

func printJSONPath(out io.Writer, text string, document any) error {
	template, err := parseJSONPath(text)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("%w: print the answer: %w", ErrInternal, err)
	}
	var plain any
	if err := utiljson.Unmarshal(encoded, &plain); err != nil {
		return fmt.Errorf("%w: print the answer: %w", ErrInternal, err)
	}
	var b bytes.Buffer
	if err := template.Execute(&b, plain); err != nil {
		return fmt.Errorf("-o jsonpath: %w", err)
	}
	return printText(out, b.String())
}
