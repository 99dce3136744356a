package source

import (
	"errors"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// parser parses the samples of series in their order, beside the decoder that reads the next ones. What samples change nobody else reads
// or changes before end.
type parser struct {
	texts  chan parsing
	free   chan []byte // to copy texts into
	failed atomic.Bool
	ended  chan error
}

// parsing is the samples of a series.
type parsing struct {
	text []byte
	use  func(seconds, value float64)
}

var errFailed = errors.New("samples before could not be parsed")

func startParser() *parser {
	const ahead = 4 // series
	p := &parser{texts: make(chan parsing, ahead), free: make(chan []byte, ahead), ended: make(chan error, 1)}
	for range ahead {
		p.free <- nil
	}
	go p.run()
	return p
}

func (p *parser) run() {
	var failed error
	for next := range p.texts {
		if failed == nil {
			failed = samples(next.text, next.use)
			p.failed.Store(failed != nil)
		}
		p.free <- next.text
	}
	p.ended <- failed
}

// parse parses a copy of the text. An error: earlier samples could not be parsed.
func (p *parser) parse(text jsontext.Value, use func(seconds, value float64)) error {
	if p.failed.Load() {
		return errFailed
	}
	p.texts <- parsing{append((<-p.free)[:0], text...), use}
	return nil
}

// end awaits the samples, and returns why some could not be parsed.
func (p *parser) end() error {
	close(p.texts)
	return <-p.ended
}
