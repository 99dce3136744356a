package markdown

import (
	"os"
	"testing"
)

// Fixture is a test of what a page shows.
type Fixture struct {
	*testing.T
	page   string
	blocks []Block
}

// NewFixture returns the test of a page, by its path from the root of the project. The test runs two folders below it.
func NewFixture(t *testing.T, page string) Fixture {
	t.Helper()
	f := Fixture{T: t, page: page}
	text, err := os.ReadFile("../../" + page)
	f.Must(err)
	f.blocks = Page{Path: page, Text: string(text)}.Blocks()
	return f
}

// Must ends the test with an error.
func (f Fixture) Must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Block returns the page's YAML that holds a text.
func (f Fixture) Block(text string) string {
	f.Helper()
	yaml, found := YAML(f.blocks, text)
	if !found {
		f.Fatalf("%s shows no YAML with %q", f.page, text)
	}
	return yaml
}
