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
		for n := range len(regexp.MustCompile(`(?m)^\| A\d+ \|`).FindAllString(page, -1)) {
			row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| A%d \|.*$`, n+1)).FindAllString(page, -1)
			if len(row) != 1 || strings.Count(row[0], "|") != 6 {
				t.Errorf("A%d has %d lines of five columns", n+1, len(row))
				continue
			}
			tests := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([^`]+))?`").FindAllStringSubmatch(row[0], -1)
			if len(tests) == 0 {
				t.Errorf("A%d names no test", n+1)
			}
			for _, test := range tests {
				if sub := strings.ReplaceAll(test[2], "_", " "); !there[test[1]] || sub != "" && !there[sub] {
					t.Errorf("A%d names %s, which is not there", n+1, test[0])
				}
			}
		}
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
