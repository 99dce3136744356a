package webhook

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestThreatsPage(t *testing.T) {
	// THREATS.md true.
	t.Run("names every attack, and tests that exist", func(t *testing.T) {
		t.Parallel()
		b, err := os.ReadFile("THREATS.md")
		if err != nil {
			t.Fatal(err)
		}
		page := string(b)
		there := testsOfTheProject(t)
		attacks := regexp.MustCompile(`(?ms)^\*\*A\d+\. .+?\n(?:\n|\z)`).FindAllString(page, -1)
		if len(attacks) == 0 {
			t.Fatal("the page has no attack")
		}
		for n, text := range attacks {
			if !strings.HasPrefix(text, fmt.Sprintf("**A%d. ", n+1)) {
				t.Errorf("A%d is not the attack at its place: %s", n+1, text)
			}
			tests := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(text, -1)
			if len(tests) == 0 {
				t.Errorf("A%d names no test", n+1)
			}
			for _, test := range tests {
				if sub := strings.ReplaceAll(test[2], "_", " "); !there[test[1]] || sub != "" && !there[sub] {
					t.Errorf("A%d names %s, which is not there", n+1, test[0])
				}
			}
		}
		page = strings.Join(strings.Fields(page), " ")
		for _, m := range regexp.MustCompile("scenario `([a-z0-9-]+)`").FindAllStringSubmatch(page, -1) {
			if _, err := os.Stat("../test/scenarios/cases/" + m[1] + ".txtar"); err != nil {
				t.Error(err)
			}
		}
	})
}

// testsOfTheProject are the names of all test functions and of their sub-tests.
func testsOfTheProject(t *testing.T) map[string]bool {
	t.Helper()
	names := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(|\tt\.Run\("([^"]+)"`)
	out := map[string]bool{}
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		for _, m := range names.FindAllSubmatch(text, -1) {
			out[string(m[1])+string(m[2])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
