package podedit

import (
	"bytes"
	"errors"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// partsOf yields the values of an object with their names, or those of a list, as they stand in the text that a pod was read
// from: most of a pod stays as it is.
func partsOf(text jsontext.Value) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		begin, err := d.ReadToken()
		named := begin.Kind() == '{'
		for err == nil && d.PeekKind() != '}' && d.PeekKind() != ']' {
			name := ""
			if named {
				var token jsontext.Token
				token, err = d.ReadToken()
				name = token.String()
			}
			value, unread := d.ReadValue()
			end := d.InputOffset()
			if err = errors.Join(err, unread); err == nil && !yield(name, text[end-int64(len(value)):end]) {
				return
			}
		}
		if err != nil {
			panic("read pod: " + err.Error()) // the pod was read from the same text
		}
	}
}
