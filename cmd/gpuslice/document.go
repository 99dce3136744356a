package main

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
)

// source says where an object stands.
type source struct {
	file     string
	document int // from 1; 0: the file itself
	item     int // of a list, from 1; 0: not in a list
	alone    bool
}

func (s source) String() string {
	text := s.file
	if s.document > 0 && !s.alone {
		text += " document " + strconv.Itoa(s.document)
	}
	if s.item > 0 {
		text += " item " + strconv.Itoa(s.item)
	}
	return text
}

// document is one document of a file.
type document struct {
	at       source
	text     []byte          // as written
	first    int             // the line of the file at which text begins
	raw      json.RawMessage // as JSON
	repeated error           // a key is written twice in one map: the last one counts in raw
	err      error           // why there is no raw
}

// documentError is why a document, or an object in it, cannot be read or answered.
type documentError struct {
	at  source
	err error
}

func (e documentError) Error() string { return e.at.String() + ": " + e.err.Error() }

// Unwrap returns the error without its place.
func (e documentError) Unwrap() error { return e.err }

// split reads the documents of a file. Documents without content are skipped; a file without any is an error where it
// was named.
func split(file string, text []byte, named bool) []document {
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
		all[i].at = source{file: file, document: i + 1, alone: len(all) == 1}
	}
	return all
}

// jsonDocuments reads a stream of JSON objects; nil where text is none. YAML's flow style begins alike.
func jsonDocuments(text []byte) []document {
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil
	}
	var all []document
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return nil
		}
		all = append(all, document{text: raw, first: 1, raw: raw})
	}
}

// yamlDocuments splits text at lines that begin a document, and turns each into JSON.
func yamlDocuments(text []byte) []document {
	var all []document
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

// yamlDocument turns a document that begins at line first into JSON; false where it holds nothing but comments.
func yamlDocument(text string, first int) (document, bool) {
	d := document{text: []byte(text), first: first}
	raw, err := yaml.YAMLToJSONStrict(d.text)
	if err == nil {
		d.raw = raw
		return d, string(raw) != "null"
	}
	if raw, lenient := yaml.YAMLToJSON(d.text); lenient == nil {
		d.raw, d.repeated = raw, fmt.Errorf("a key is repeated: %s", lineInFile(err, first))
		return d, true
	}
	d.err = fmt.Errorf("it is neither YAML nor JSON: %s", lineInFile(err, first))
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
