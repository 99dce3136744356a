package commandline

import "testing"

func TestUsesFirstProcess(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"kill -TERM 1":                            "kill -TERM 1",
		"/bin/kill 1":                             "/bin/kill 1",
		"sleep 5; kill -s QUIT 1 && exit":         "kill -s QUIT 1",
		"kill -9 -1":                              "kill -9 -1",
		"trap 'kill -INT 1' EXIT; a":              "kill -INT 1",
		"timeout 5 kill -0 1":                     "kill -0 1",
		"echo x > /proc/1/fd/1":                   "/proc/1/",
		"tr '\\0' '\\n' </proc/1/environ":         "/proc/1/",
		"tail --pid=1 -f /dev/null":               "tail --pid=1",
		"nsenter -t 1 -m ps":                      "nsenter -t 1",
		"py-spy dump --pid 1":                     "py-spy dump --pid 1",
		"jcmd 1 GC.heap_dump":                     "jcmd 1",
		"pkill -P 1":                              "pkill -P 1",
		"for p in /proc/[0-9]*; do :; done":       "/proc/[0-9]",
		`python -c "import os; os.kill(1, 15)"`:   "kill(1,",
		`node -e "process.kill(1)"`:               "kill(1)",
		`ruby -e "Process.kill('TERM', 1)"`:       "kill('TERM', 1)",
		`[ "$$" = 1 ] || exit`:                    `$$" = 1`,
		"PID=1; kill $PID":                        "PID=1",
		"kill $(jobs -p)":                         "",
		"kill -1 $PID":                            "",
		"kill -TERM 15":                           "",
		"sleep 1":                                 "",
		"python train.py -p 1 --rank 1":           "",
		"mkdir -p 1":                              "",
		"cat /proc/10/status /proc/cpuinfo":       "",
		"nice -n 1 python a.py":                   "",
		"tail -n 1 log":                           "",
		"ps -e":                                   "",
		"until pgrep -x redis-server; do :; done": "",
	} {
		if got := UsesFirstProcess([]string{"sh", "-c", text}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := UsesFirstProcess([]string{"kill", "-TERM", "1"}); got != "kill -TERM 1" {
		t.Errorf("without a shell: %q", got)
	}
	if got := UsesFirstProcess([]string{"1"}); got != "" {
		t.Errorf("got %q", got)
	}
}
