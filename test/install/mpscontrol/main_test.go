package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDaemon(t *testing.T) {
	t.Parallel()
	t.Run("answers as the real one", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "clients"), []byte("41 500 4026 python train.py\n42 501 4027 python\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ command, want string }{
			{"get_server_list", "500\n501\n"},
			{"terminate_client 500 99", "Client 99 not found\n"},
			{"terminate_client 500 41", "0\n"},
			{"get_server_list", "501\n"},
			{"sing", "Unrecognized command\n"},
		} {
			var out strings.Builder
			if err := run(dir, strings.NewReader(tc.command+"\n"), &out); err != nil || out.String() != tc.want {
				t.Errorf("%s: answered %q, %v; want %q", tc.command, out.String(), err, tc.want)
			}
		}
		said, err := os.ReadFile(filepath.Join(dir, "said"))
		if err != nil || strings.Count(string(said), "\n") != 5 || !strings.Contains(string(said), " terminate_client 500 41\n") {
			t.Errorf("kept %q, %v", said, err)
		}
	})
}

func TestDaemonDead(t *testing.T) {
	t.Parallel()
	t.Run("without its file", func(t *testing.T) {
		t.Parallel()
		var out strings.Builder
		if err := run(t.TempDir(), strings.NewReader("ps\n"), &out); err == nil {
			t.Errorf("it answered %q", out.String())
		}
	})
}
