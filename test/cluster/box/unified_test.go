package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The kernel's files are stood in for by plain ones, which keep what was written last.
func TestHandDown(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, has, given, want string }{
		{"what is handed down already is left alone", "cpu cpuset memory pids", "cpuset cpu memory pids", "cpuset cpu memory pids"},
		{"what is missing is added", "cpu cpuset memory pids", "cpuset cpu memory", "+pids"},
		{"what the group does not have is not asked for", "memory", "", "+memory"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"cgroup.controllers": tc.has, "cgroup.subtree_control": tc.given} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := handDown(dir); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
			if err != nil || strings.TrimSpace(string(got)) != tc.want {
				t.Errorf("subtree_control has %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}
