package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMutants(t *testing.T) {
	const source = `package p

func f(a, b int, on bool) string {
	for a < b {
		if a == 1 && !on {
			continue
		}
		on = true
		a = a + 1
	}
	return "a" + "b" + string(rune(a))
}
`
	all, err := mutantsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, m.String())
		if _, err := parser.ParseFile(token.NewFileSet(), "p.go", m.apply([]byte(source)), 0); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	want := []string{
		"p.go:4: < becomes <=", "p.go:4: < becomes >=",
		"p.go:5: == becomes !=", "p.go:5: && becomes ||", "p.go:5: ! becomes",
		"p.go:6: continue becomes break",
		"p.go:8: true becomes false",
		"p.go:9: + becomes -",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
