package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// page is a Markdown file, its path counted from the root of the project.
type page struct{ path, text string }

// pages are all Markdown files of the project.
func pages(t *testing.T) (out []page) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || path == "out" || len(path) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		out = append(out, page{path, string(text)})
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	return out
}

// block is a fenced part of a page.
type block struct {
	page, info, text string
	line             int
}

// where names the block for people.
func (b block) where() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// blocks are the fenced parts of a page, in their order, without the indentation of their fences. One that is not closed
// reaches to the end.
func blocks(p page) (out []block) {
	var open *block
	indent := ""
	for i, line := range strings.Split(p.text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open, indent = &block{page: p.path, info: info, line: i + 1}, line[:len(line)-len(strings.TrimLeft(line, " "))]
		case fence:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		out = append(out, *open)
	}
	return out
}
