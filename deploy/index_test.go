package deploy_test

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
)

// maxClicks is how many links lead from the README to any page.
const maxClicks = 2

// TestIndex: every page is two links from the README's list of pages, at most.
func TestIndex(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.Path, ".") {
			texts[p.Path] = p.Text
		}
	}
	_, index, _ := strings.Cut(texts["README.md"], "\n## Pages\n")
	if index == "" {
		t.Fatal("README.md has no section Pages")
	}
	found, read := map[string]bool{"README.md": true}, map[string]string{"README.md": index}
	for range maxClicks {
		next := map[string]string{}
		for from, text := range read {
			for _, to := range linked(texts, from, text) {
				if !found[to] {
					found[to], next[to] = true, texts[to]
				}
			}
		}
		read = next
	}
	for name := range texts {
		if !found[name] {
			t.Errorf("%s: no page that the README's section Pages names has a link to it", name)
		}
	}
}

// linked are the pages to which the text of a page has links. One to a folder leads to its README.
func linked(texts map[string]string, from, text string) (all []string) {
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		u, err := url.Parse(m[1])
		if err != nil || u.Scheme != "" || u.Path == "" {
			continue
		}
		target := path.Join(path.Dir(from), u.Path)
		for _, name := range []string{target, path.Join(target, "README.md")} {
			if _, ok := texts[name]; ok {
				all = append(all, name)
			}
		}
	}
	return all
}

// TestPictures: a picture is XML, has a title for those who do not see it, and is readable on dark pages.
func TestPictures(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(os.DirFS(".."), "*/*.svg")
	if err != nil || len(names) == 0 {
		t.Fatalf("no picture: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(path.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(string(text)))
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{"<title ", "prefers-color-scheme: dark", `viewBox="`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}
