package mps

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Program is the name of NVIDIA's control program.
const Program = "nvidia-cuda-mps-control"

// maxAnswer bounds the control program's answer.
const maxAnswer = 1 << 20

// ErrOutOfReach is the error of a daemon whose program or pipe the container
// does not have.
var ErrOutOfReach = errors.New("the MPS daemon is out of the guard's reach")

// Control sends commands to one MPS daemon through the control program.
type Control struct {
	Program       string        // path; empty: Program on PATH
	PipeDirectory string        // the daemon's
	Limit         time.Duration // of one command; 0: 3 s
}

// Client is one client of the daemon.
type Client struct {
	PID       int    // in the daemon's PID namespace
	Server    int    // likewise
	Namespace uint64 // inode of the client's PID namespace
	Command   string
}

// Alive returns nil when the daemon answers.
func (c Control) Alive(ctx context.Context) error {
	_, err := c.send(ctx, "get_server_list")
	return err
}

// Clients returns every client of the daemon, on all devices; one may be there
// several times.
func (c Control) Clients(ctx context.Context) ([]Client, error) {
	text, err := c.send(ctx, "ps")
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(text) != "" {
		return parseClients(text)
	}
	// An answer must name no client explicitly, not by leaving it out.
	servers, err := c.send(ctx, "get_server_list")
	if err == nil && strings.TrimSpace(servers) != "" {
		err = errors.New("ps: the daemon has servers and answered nothing")
	}
	return nil, err
}

// Terminate makes the daemon end all contexts of a client, busy or not. The
// client's process lives on, with errors, and may be signaled then.
func (c Control) Terminate(ctx context.Context, client Client) error {
	command := fmt.Sprintf("terminate_client %d %d", client.Server, client.PID)
	text, err := c.send(ctx, command)
	if err != nil {
		return err
	}
	if answer := strings.TrimSpace(text); answer != "0" && answer != "" {
		return fmt.Errorf("%s: the daemon answered %.200q", command, answer)
	}
	return nil
}

// reach returns the control program, or why the daemon cannot be reached from here,
// wrapping ErrOutOfReach. It does not check whether the daemon lives.
func (c Control) reach() (program string, err error) {
	if c.PipeDirectory == "" {
		return "", fmt.Errorf("%w: no pipe directory is set", ErrOutOfReach)
	}
	if _, err = os.Stat(c.PipeDirectory); err == nil {
		program, err = exec.LookPath(cmp.Or(c.Program, Program))
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrOutOfReach, err)
	}
	return program, nil
}

// send sends the daemon one command and returns its answer.
func (c Control) send(ctx context.Context, command string) (string, error) {
	program, err := c.reach()
	if err != nil {
		return "", err
	}
	limit := cmp.Or(c.Limit, 3*time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer := bounded{most: maxAnswer}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "CUDA_MPS_PIPE_DIRECTORY="+c.PipeDirectory)
	cmd.Stdin = strings.NewReader(command + "\n")
	cmd.Stdout, cmd.Stderr = &answer, &answer
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s", limit)
		}
		return "", fmt.Errorf("%s: %w: %.200s", command, err, strings.TrimSpace(answer.String()))
	}
	return answer.String(), nil
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(text []byte) (int, error) {
	b.Buffer.Write(text[:min(len(text), max(0, b.most-b.Len()))])
	return len(text), nil
}

// parseClients reads the answer to "ps": a heading, then a line for each client.
func parseClients(text string) ([]Client, error) {
	var clients []Client
	columns := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(columns) == 0 {
			for i, name := range fields {
				columns[name] = i
			}
			if _, found := columns["NAMESPACE"]; !found || columns["PID"] != 0 {
				return nil, fmt.Errorf("ps: the daemon answered %.80q", line)
			}
			continue
		}
		client, err := parseClient(fields, columns)
		if err != nil {
			return nil, fmt.Errorf("ps: %.80q: %w", strings.TrimSpace(line), err)
		}
		clients = append(clients, client)
	}
	return clients, nil
}

func parseClient(fields []string, columns map[string]int) (Client, error) {
	if len(fields) <= columns["NAMESPACE"] || len(fields) <= columns["SERVER"] {
		return Client{}, errors.New("columns are missing")
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return Client{}, err
	}
	server, err := strconv.Atoi(fields[columns["SERVER"]])
	if err != nil {
		return Client{}, err
	}
	namespace, err := strconv.ParseUint(fields[columns["NAMESPACE"]], 10, 64)
	if err != nil {
		return Client{}, err
	}
	return Client{PID: pid, Server: server, Namespace: namespace, Command: strings.Join(fields[columns["NAMESPACE"]+1:], " ")}, nil
}

// Namespace returns the inode of the PID namespace of the process that reads
// under root, "/proc" but in tests.
func Namespace(root string) (uint64, error) {
	link, err := os.Readlink(filepath.Join(root, "self/ns/pid"))
	if err != nil {
		return 0, fmt.Errorf("read the PID namespace: %w", err)
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(link, "pid:["), "]"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the PID namespace: %q: %w", link, err)
	}
	return inode, nil
}

// controlPipe is the socket of a control daemon in its pipe directory.
const controlPipe = "control"

// PipeDirectories returns the pipe directories of the daemons below some
// directories: each itself, one below it, or "NAME/pipe", as NVIDIA's device
// plugin lays them out.
func PipeDirectories(below []string) []string {
	var found []string
	for _, directory := range below {
		for _, pattern := range []string{"", "*", "*/pipe"} {
			pipes, err := filepath.Glob(filepath.Join(directory, pattern, controlPipe))
			if err != nil {
				continue // a name with brackets that do not match
			}
			for _, pipe := range pipes {
				if info, err := os.Lstat(pipe); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
					found = append(found, filepath.Dir(pipe))
				}
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
