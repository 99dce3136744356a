// Command standin is the program of every image that a test cluster does not have. It prints what the container would run, and in
// its place holds memory of the simulated GPU, if the container has one, and answers on the container's ports, so that probes
// succeed. Where a container has to end, as in a Job, it ends.
//
// Its variables are those of test/cluster/cmd/nvidia-runtime, and one of the pod's author: SIMULATE replaces its
// behavior, in the steps of test/fakegpu/tenant.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	do := steps(os.Args[1:], os.Getenv)
	fmt.Printf("simulated: this cluster pulls no images. In place of %q this container does: %s (set the variable SIMULATE to other steps, such as \"hold 2GiB wait 10s grow 2GiB 12GiB 5s\")\n",
		cmp.Or(strings.Join(os.Args[1:], " "), "the image's program"), strings.Join(do, " "))
	for port := range strings.SplitSeq(os.Getenv("STANDIN_PORTS"), ",") {
		if port != "" {
			go serve(port)
		}
	}
	status, err := run(exec.Command("/tenant", do...))
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin: run /tenant:", err)
	}
	os.Exit(status)
}

// steps replace a program and its arguments.
func steps(program []string, variable func(string) string) (do []string) {
	if said := variable("SIMULATE"); said != "" {
		return strings.Fields(said)
	}
	switch variable("NVIDIA_VISIBLE_DEVICES") {
	case "", "none", "void":
	default:
		do = append(do, "hold", "1GiB")
	}
	length := ""
	switch variable("STANDIN_ENDS") {
	case "init":
		length = "1s"
	case "job":
		length = "30s"
	}
	if seconds, ok := sleeps(program); ok {
		length = seconds
	}
	if length == "" {
		return append(do, "wait", "8760h")
	}
	return append(do, "wait", length, "leave")
}

// sleeps reports whether a program is sleep with a number of seconds.
func sleeps(program []string) (wait string, ok bool) {
	if len(program) != 2 || path.Base(program[0]) != "sleep" {
		return "", false
	}
	seconds, err := strconv.ParseUint(program[1], 10, 31)
	return fmt.Sprintf("%ds", seconds), err == nil
}

func serve(port string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "simulated") })
	fmt.Fprintf(os.Stderr, "standin: port %s: %v\n", port, http.ListenAndServe(":"+port, answer))
}

// run passes signals on to a child, and returns its exit status as a shell does.
func run(child *exec.Cmd) (int, error) {
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := child.Start(); err != nil {
		return 1, err
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	err := child.Wait()
	if end, ok := errors.AsType[*exec.ExitError](err); ok {
		if how, ok := end.Sys().(syscall.WaitStatus); ok && how.Signaled() {
			return 128 + int(how.Signal()), nil
		}
		return end.ExitCode(), nil
	}
	return 0, err
}
