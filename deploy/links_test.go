package deploy_test

import (
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.*)$`)
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
)

// TestLinksOfPagesLead follows every link from one page of the project to another, and to its headings.
func TestLinksOfPagesLead(t *testing.T) {
	t.Parallel()
	all := map[string]string{}
	for _, p := range pages(t) {
		all[p.Path] = fenced.ReplaceAllString(p.Text, "")
	}
	followed := 0
	for from, text := range all {
		for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
			u, err := url.Parse(m[1])
			if err != nil {
				t.Errorf("%s: %s: %v", from, m[1], err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			followed++
			if why := missing(all, from, u); why != "" {
				t.Errorf("%s: %s leads nowhere: %s", from, m[1], why)
			}
		}
	}
	if followed == 0 {
		t.Error("no page has a link")
	}
	for _, bad := range []string{"nowhere.md", "README.md#nowhere", "../../outside.md"} {
		if u, _ := url.Parse(bad); missing(all, "deploy/README.md", u) == "" {
			t.Errorf("nothing is found wrong with a link to %s", bad)
		}
	}
}

// missing says what a link from a page does not find; "": it leads somewhere.
func missing(all map[string]string, from string, u *url.URL) string {
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(target, "..") {
		return "it is outside of the project"
	}
	if _, err := os.Stat(path.Join("..", target)); err != nil {
		return err.Error()
	}
	if u.Fragment == "" {
		return ""
	}
	for _, m := range heading.FindAllStringSubmatch(all[target], -1) {
		if anchor(m[1]) == u.Fragment {
			return ""
		}
	}
	return "no heading has the anchor " + u.Fragment
}

// anchor is how code hosts name a heading: lower case, spaces as hyphens, and no other punctuation than hyphens and
// underscores.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
