package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/gpuslice/gpuslice/guard"
)

// shortStat is "PID (COMMAND) STATE PARENT START", which fixtures write for a
// whole line of /proc/<pid>/stat.
var shortStat = regexp.MustCompile(`(?s)^(\d+) \((.*)\) (.) (\d+) (\d+)\n$`)

func fullStat(pid int, command, state string, parent int, start string) string {
	return fmt.Sprintf("%d (%s) %s %d%s %s 0 0\n", pid, command, state, parent, strings.Repeat(" 0", 17), start)
}

// tree lays out a txtar archive as a /proc.
func tree(t *testing.T, file string) (root, want string) {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	for _, f := range archive.Files {
		text := string(f.Data)
		if f.Name == "want" {
			want = text
			continue
		}
		if m := shortStat.FindStringSubmatch(text); filepath.Base(f.Name) == "stat" {
			if m == nil {
				t.Fatalf("%s: %q is no PID (COMMAND) STATE PARENT START", f.Name, text)
			}
			pid, _ := strconv.Atoi(m[1])
			parent, _ := strconv.Atoi(m[4])
			text = fullStat(pid, m[2], m[3], parent, m[5])
		}
		write(t, filepath.Join(root, f.Name), text)
	}
	return root, want
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"v1", "v1-private", "v2-host", "v2-private", "v2-host-crun", "v2-private-crun", "tricks"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, want := tree(t, "testdata/"+name+".txtar")
			table, err := Open(root)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(want) {
				pid, _ := strconv.Atoi(strings.Fields(line)[0])
				fmt.Fprintf(&got, "%d is %s\n", pid, describe(table.Name(guard.Process{PID: pid})))
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func describe(p guard.Process) string {
	switch {
	case p.Container == "" && p.PID == 1:
		return "protected, without a container"
	case p.Container == "":
		return "nobody"
	case p.Container == guard.UnnamedContainer && !p.Protected:
		return "unnamed"
	case p.Protected:
		return p.Container + ", protected"
	}
	return p.Container
}

func TestNameAfterContainerExit(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/tricks.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	name := func(pid int) string { return table.Name(guard.Process{PID: pid}).Container }
	if got := [2]string{name(20), name(30)}; got != [2]string{"trainer", guard.UnnamedContainer} {
		t.Fatalf("named %q while the first holds the name", got)
	}
	if err := os.RemoveAll(filepath.Join(root, "20")); err != nil {
		t.Fatal(err)
	}
	if got := name(30); got != guard.UnnamedContainer {
		t.Errorf("named %q: all processes were searched at once", got)
	}
	table.nameRetry = 0
	if got := name(30); got != "trainer" {
		t.Errorf("named %q once the container was started again", got)
	}
}

func TestNameAfterOwnMounts(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/v2-private.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	// Asked about first, the child with mounts of its own takes its name from the
	// container's first process.
	if got := table.Name(guard.Process{PID: 21}).Container; got != "trainer" {
		t.Errorf("the child is in %q, want trainer", got)
	}
	write(t, filepath.Join(root, "20/mountinfo"), "40 31 8:1 /pods/0aa1/containers/scorer/00 /x rw - ext4 /dev/sda1 rw\n")
	if got := table.Name(guard.Process{PID: 20}).Container; got != "trainer" {
		t.Errorf("the container became %q after it made a mount", got)
	}
}

func TestSharesPIDs(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"v2-private": true, "v1": true, "v2-host": true, "v1-private": false} {
		root, _ := tree(t, "testdata/"+name+".txtar")
		table, err := Open(root)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.SharesPIDs(); got != want {
			t.Errorf("%s: shared %v, want %v", name, got, want)
		}
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1", "1 (x", "x (a) S 1 2", "1 (a) S 0 1 2 3",
		strings.Replace(fullStat(1, "a", "S", 0, "x"), "x", "-", 1)} {
		if s, err := parseStat(text); err == nil {
			t.Errorf("%q was read as %+v", text, s)
		}
	}
	s, err := parseStat(fullStat(20, "a\x1b[2J\xff)", "S", 3, "77"))
	if want := (stat{pid: 20, command: "a?[2J?)", state: 'S', parent: 3, start: 77}); err != nil || s != want {
		t.Errorf("got %+v, %v; want %+v", s, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0::/../a", "1 1 8:1 /pods/a/containers/b/0 /dev/x rw", "1 (a) S 0 1")
	f.Fuzz(func(t *testing.T, at, mounts, text string) {
		for _, ours := range []string{"/", "/kubepods/pod1/a", "/kubepods/pod1/a/container"} {
			l := learnLayout(ours, at)
			if where, key := l.locate(at); where == sibling && (key == ours || !strings.HasPrefix(key, "/")) {
				t.Errorf("%q beside %q gave %q", at, ours, key)
			}
			if where, _ := l.locate(ours); where == sibling || where == elsewhere && l.pod != "" {
				t.Errorf("%q is not its own beside %q", ours, at)
			}
		}
		k, err := learnKubeletDir(mounts)
		if err == nil && (k.podUID == "" || k.prefix == "") {
			t.Errorf("%q gave %+v", mounts, k)
		}
		for _, k := range []kubeletDir{k, {"8:1", "/", "a"}} {
			if id, err := k.identify(mounts); err == nil && id.container == "" {
				t.Errorf("%q gave %+v", mounts, id)
			}
		}
		_, _ = parseStat(text)
	})
}

func TestRuns(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/v1.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	for container, want := range map[string]bool{"trainer": true, "scorer": true, "other": false} {
		if got := table.Runs(container); got != want {
			t.Errorf("%s runs: %v, want %v", container, got, want)
		}
	}
}

func TestCgroup(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/v1.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(root, "20/root/sys/fs/cgroup")
	if err := os.MkdirAll(want, 0o755); err != nil {
		t.Fatal(err)
	}
	for pid, want := range map[int]string{20: want, 1 << 22: ""} {
		if got := table.Cgroup(pid); got != want {
			t.Errorf("process %d: %q, want %q", pid, got, want)
		}
	}
}

// TestFind: a process of another container of the pod may be terminated, and nothing
// else may.
func TestFind(t *testing.T) {
	t.Parallel()
	root, _ := tree(t, "testdata/v2-private.txtar")
	table, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "50/stat"), fullStat(50, "probe", "S", 0, "900"))
	write(t, filepath.Join(root, "50/cgroup"), "0::/\n")
	find := func(pid int) bool { _, key := table.find(pid); return key != "" }
	for pid, want := range map[int]bool{1: false, table.self: false, 20: true, 21: true, 40: false, 50: false, 1 << 22: false} {
		if got := find(pid); got != want {
			t.Errorf("process %d may be terminated: %v, want %v", pid, got, want)
		}
	}
	// Neither may be, where it looks like one of another container.
	write(t, filepath.Join(root, "1/cgroup"), "0::/../trainer\n")
	write(t, filepath.Join(root, strconv.Itoa(table.self), "cgroup"), "0::/../trainer\n")
	if find(1) || find(table.self) {
		t.Error("the first process, or the guard, may be terminated")
	}
}
