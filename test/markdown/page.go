// Package markdown reads the project's pages, and runs their commands as a reader does.
//
// A fence with the language "sh" holds commands, which run on a node in the order of the page. One that cannot run
// there gives the reason after the language: "sh not run: needs GKE". A fence with the language "output" holds the
// output of the commands before it.
package markdown

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Page is a Markdown file, its path counted from the root of the project.
type Page struct{ Path, Text string }

// Block is a fenced part of a page.
type Block struct {
	Page, Section string // the section is the heading above
	Info, Text    string
	Prints        string // the commands' output, by the page; empty: unspecified
	Line          int
}

// Pages returns all Markdown files of the project.
func Pages(root fs.FS) (out []Page, err error) {
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || path == "out" || len(path) > 1 && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		out = append(out, Page{path, string(text)})
		return err
	})
	if err == nil && len(out) == 0 {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("read pages: %w", err)
	}
	return out, nil
}

// Blocks returns the fenced parts of a page, in their order, without the indentation of their fences. One that is not closed
// reaches to the end.
func (p Page) Blocks() (out []Block) {
	var open *Block
	indent, section := "", ""
	for i, line := range strings.Split(p.Text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open, indent = &Block{Page: p.Path, Section: section, Info: info, Line: i + 1}, line[:len(line)-len(strings.TrimLeft(line, " "))]
		case fence:
			if open.Info == "output" && len(out) > 0 {
				out[len(out)-1].Prints = open.Text
			}
			out = append(out, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(line, "#"):
			section = strings.TrimSpace(strings.TrimLeft(line, "#"))
		}
	}
	if open != nil {
		out = append(out, *open)
	}
	return out
}

// Where names the block for people.
func (b Block) Where() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

// YAML returns the first block of YAML that holds a text; false: there is none.
func YAML(blocks []Block, text string) (string, bool) {
	for _, b := range blocks {
		if b.Info == "yaml" && strings.Contains(b.Text, text) {
			return b.Text, true
		}
	}
	return "", false
}

// Commands returns those that run, and otherwise why they do not; "" and "" if the block holds no commands.
func (b Block) Commands() (commands, notRun string) {
	language, rest, _ := strings.Cut(b.Info, " ")
	if language != "sh" {
		return "", ""
	}
	if reason, ok := strings.CutPrefix(rest, "not run: "); ok {
		return "", strings.TrimSpace(reason)
	}
	return b.Text, ""
}

var applied = regexp.MustCompile(`(?m)^kubectl apply .*-f (\S+\.yaml)$`)

// Files returns the files of the project that the block's commands apply, whether they run or not.
func (b Block) Files() (paths []string) {
	if language, _, _ := strings.Cut(b.Info, " "); language != "sh" {
		return nil
	}
	for _, m := range applied.FindAllStringSubmatch(b.Text, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// Elide cuts each line of a text where the block's line ends in "...", after the same beginning.
func (b Block) Elide(text string) string {
	lines := strings.Split(text, "\n")
	for i, shown := range strings.Split(b.Text, "\n") {
		beginning, elided := strings.CutSuffix(shown, "...")
		if elided && i < len(lines) && strings.HasPrefix(lines[i], beginning) {
			lines[i] = shown
		}
	}
	return strings.Join(lines, "\n")
}
