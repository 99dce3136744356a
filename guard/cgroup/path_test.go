package cgroup

import (
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for text, want := range map[string]string{
		v1("/a/b"):                    "/a/b",
		v2("/a"):                      "/a",
		v2("/a (deleted)"):            "/a",
		"1:name=systemd:/s\n0::/v2\n": "/v2",
		"3:cpu:/c\n2:pids:/p\n1:name=systemd:/s\n": "/p",
		"5:cpu,memory:/m\n":                        "/m",
		"1:cpu:/c\n":                               "",
		"":                                         "",
	} {
		if got, err := Path(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q gave %q, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	f.Add("0::/../a")
	f.Fuzz(func(t *testing.T, text string) {
		if at, err := Path(text); err == nil && !strings.HasPrefix(at, "/") {
			t.Errorf("%q gave the path %q", text, at)
		}
	})
}
