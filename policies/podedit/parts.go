package podedit

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// reader reads one level of the text that a pod was read from: most of a pod stays as it is.
type reader struct {
	text    jsontext.Value
	decoder *jsontext.Decoder
}

// readParts begins to read the parts of an object or of a list.
func readParts(text jsontext.Value) reader {
	r := reader{text, jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	r.token()
	return r
}

// token reads the bracket that begins a value, or a name.
func (r reader) token() jsontext.Token {
	token, err := r.decoder.ReadToken()
	if err != nil {
		panic("read pod: " + err.Error()) // the pod was read from the same text
	}
	return token
}

// more reports whether there is another part.
func (r reader) more() bool {
	next := r.decoder.PeekKind()
	return next != '}' && next != ']'
}

// value returns the next value as it stands in the text.
func (r reader) value() jsontext.Value {
	value, err := r.decoder.ReadValue()
	if err != nil {
		panic("read pod: " + err.Error())
	}
	end := r.decoder.InputOffset()
	return r.text[end-int64(len(value)) : end]
}

// fieldsIn are the values of an object.
func fieldsIn(object jsontext.Value) map[string]jsontext.Value {
	out := make(map[string]jsontext.Value)
	for r := readParts(object); r.more(); {
		name := r.token().String()
		out[name] = r.value()
	}
	return out
}

// elementsIn are the values of a list.
func elementsIn(list jsontext.Value) (out []jsontext.Value) {
	for r := readParts(list); r.more(); {
		out = append(out, r.value())
	}
	return out
}

// stands reports whether there is a value.
func stands(raw jsontext.Value) bool { return len(raw) > 0 && raw.Kind() != 'n' }
