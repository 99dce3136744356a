package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/problem"
)

// Source is where an object is in the input.
type Source struct {
	File     string
	Document int // from 1; 0: the file itself
	Item     int // of a list, from 1; 0: not in a list
	alone    bool
}

func (s Source) String() string {
	text := s.File
	if s.Document > 0 && !s.alone {
		text += " document " + strconv.Itoa(s.Document)
	}
	if s.Item > 0 {
		text += " item " + strconv.Itoa(s.Item)
	}
	return text
}

// Place is s as -o json prints it.
func (s Source) Place() problem.Place {
	return problem.Place{Source: s.File, Document: s.Document, Item: s.Item}
}

// Document is one document of a file.
type Document struct {
	At       Source
	Text     []byte          // as written
	first    int             // the line of the file at which Text begins
	Raw      json.RawMessage // as JSON
	repeated error           // a key is written twice in one map: the last one counts in Raw
	Err      error           // why there is no Raw
}

// Error is why a document, or an object in it, cannot be read or answered.
type Error struct {
	At  Source
	Err error
}

func (e Error) Error() string { return e.At.String() + ": " + e.Err.Error() }

// Unwrap returns the error without its place.
func (e Error) Unwrap() error { return e.Err }

// Printed are errors as -o json prints them.
func Printed(problems []Error) []problem.Error {
	printed := []problem.Error{}
	for _, e := range problems {
		printed = append(printed, problem.Error{Place: e.At.Place(), Message: e.Err.Error()})
	}
	return printed
}

// split reads the documents of a file. Documents without content are skipped; a file without any is an error where it
// was named.
func split(file string, text []byte, named bool) []Document {
	if !utf8.Valid(text) {
		return failed(file, errors.New("it is not UTF-8 text"))
	}
	all := jsonDocuments(text)
	if all == nil {
		all = yamlDocuments(text)
	}
	if len(all) == 0 && named {
		return failed(file, errors.New("it holds no object"))
	}
	for i := range all {
		all[i].At = Source{File: file, Document: i + 1, alone: len(all) == 1}
	}
	return all
}

// jsonDocuments reads a stream of JSON objects; nil where text is none. YAML's flow style begins alike.
func jsonDocuments(text []byte) []Document {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil
	}
	var all []Document
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		all = append(all, Document{Text: raw, first: 1, Raw: raw})
	}
}

// yamlDocuments splits text at lines that begin a document, and turns each into JSON.
func yamlDocuments(text []byte) []Document {
	var all []Document
	var current []string
	first := 1
	flush := func(next int) {
		if d, ok := yamlDocument(strings.Join(current, "\n"), first); ok {
			all = append(all, d)
		}
		current, first = nil, next
	}
	number := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		number++
		marker := strings.TrimRight(line, " \t\r")
		switch rest, begins := strings.CutPrefix(marker, "---"); {
		case begins && rest == "":
			flush(number + 1)
		case begins && (rest[0] == ' ' || rest[0] == '\t'):
			flush(number)
			current = append(current, rest)
		case marker == "...":
			flush(number + 1)
		default:
			current = append(current, line)
		}
	}
	flush(number)
	return all
}

// yamlDocument turns a document that begins at line first into JSON; false where it has nothing but comments.
func yamlDocument(text string, first int) (Document, bool) {
	d := Document{Text: []byte(text), first: first}
	raw, err := yaml.YAMLToJSONStrict(d.Text)
	if err == nil {
		d.Raw = raw
		return d, string(raw) != "null"
	}
	if raw, lenient := yaml.YAMLToJSON(d.Text); lenient == nil {
		d.Raw, d.repeated = raw, fmt.Errorf("a key is repeated: %s", lineInFile(err, first))
		return d, true
	}
	d.Err = fmt.Errorf("it is neither YAML nor JSON: %s", lineInFile(err, first))
	return d, true
}

var lineNumber = regexp.MustCompile(`\bline ([0-9]+)`)

// lineInFile is the text of a YAML error on one line. Line numbers count from the document's first line there, and from
// the file's here.
func lineInFile(err error, first int) string {
	text := lineNumber.ReplaceAllStringFunc(err.Error(), func(found string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(found, "line ")) // digits, or 0 for more than an int holds
		return "line " + strconv.Itoa(n+first-1)
	})
	for _, noise := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:"} {
		text = strings.TrimPrefix(text, noise)
	}
	text = strings.ReplaceAll(text, "%!s(<nil>)", "null") // the library prints the type of a null so
	return strings.Join(strings.Fields(text), " ")
}
