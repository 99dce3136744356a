package deploy_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/test/markdown"
)

// TestTroubleshootingTexts looks for every text that TROUBLESHOOTING.md quotes, in blocks of text and in
// the items of lists and the rows of tables that begin with code, in the sources and in what the scenarios want. "..." stands for what
// differs.
func TestTroubleshootingTexts(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("TROUBLESHOOTING.md")
	if err != nil {
		t.Fatal(err)
	}
	said := sources(t)
	quotes := 0
	for _, quote := range quotesOf(markdown.Page{Path: "TROUBLESHOOTING.md", Text: string(b)}) {
		for _, piece := range strings.Split(quote, "...") {
			if piece = strings.Trim(piece, " :;,"); len(piece) < 8 {
				continue // too short to be anybody's
			}
			quotes++
			if !strings.Contains(said, piece) {
				t.Errorf("nothing says %q", piece)
			}
		}
	}
	if quotes < 20 {
		t.Errorf("the page quotes %d texts: this test does not see them", quotes)
	}
	if strings.Contains(said, "nobody says this, "+"not even here") {
		t.Error("everything is said")
	}
}

// quotesOf are the texts that a page shows as the programs'.
func quotesOf(p markdown.Page) (out []string) {
	for _, b := range p.Blocks() {
		if b.Info == "text" {
			out = append(out, strings.Split(strings.TrimSpace(b.Text), "\n")...)
		}
	}
	prose := fenced.ReplaceAllString(p.Text, "")
	for _, m := range regexp.MustCompile("(?m)^(?:-|\\|) (`.*?`)(?:: | \\|)").FindAllStringSubmatch(prose, -1) {
		for _, span := range codeSpan.FindAllString(m[1], -1) {
			out = append(out, strings.Trim(span, "`"))
		}
	}
	return out
}

// sources are the programs' source, with plain quotes, what scenarios want, and the manifests, whose policies have messages.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case strings.HasSuffix(path, ".txtar"), strings.HasPrefix(path, "deploy/") && strings.HasSuffix(path, ".yaml"),
			strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			text, err := fs.ReadFile(root, path)
			all.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(all.String(), `\"`, `"`)
	return regexp.MustCompile("[\"`] ?\\+\\s*[\"`]").ReplaceAllString(text, "") // texts that are written over several lines
}
