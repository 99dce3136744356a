package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Getenv("CUDA_MPS_PIPE_DIRECTORY"), os.Stdin, os.Stdout); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// run answers the one command on in.
func run(dir string, in io.Reader, out io.Writer) error {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return fmt.Errorf("read command: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "clients"))
	if err != nil {
		return errors.New("cannot find MPS control daemon process")
	}
	command := strings.TrimSpace(line)
	if err := note(dir, command); err != nil {
		return err
	}
	clients := strings.Split(strings.TrimSpace(string(text)), "\n")
	clients = slices.DeleteFunc(clients, func(c string) bool { return len(strings.Fields(c)) < 4 })
	words := strings.Fields(command)
	switch {
	case len(words) == 1 && words[0] == "get_server_list":
		return servers(clients, out)
	case len(words) == 1 && words[0] == "ps":
		return list(clients, out)
	case len(words) == 3 && words[0] == "terminate_client":
		return terminate(dir, clients, words[2]+" "+words[1]+" ", out)
	}
	_, err = fmt.Fprintln(out, "Unrecognized command")
	return err
}

// note keeps the command.
func note(dir, command string) error {
	f, err := os.OpenFile(filepath.Join(dir, "said"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if errors.Is(err, syscall.EROFS) || errors.Is(err, os.ErrPermission) {
		return nil // a caller that may not write files; the real daemon is reached through a pipe
	}
	if err != nil {
		return fmt.Errorf("note command: %w", err)
	}
	if _, err := fmt.Fprintln(f, time.Now().UTC().Format(time.RFC3339Nano), command); err != nil {
		_ = f.Close()
		return fmt.Errorf("note command: %w", err)
	}
	return f.Close()
}

func servers(clients []string, out io.Writer) error {
	var all []string
	for _, c := range clients {
		all = append(all, strings.Fields(c)[1])
	}
	slices.Sort(all)
	for _, server := range slices.Compact(all) {
		if _, err := fmt.Fprintln(out, server); err != nil {
			return err
		}
	}
	return nil
}

func list(clients []string, out io.Writer) error {
	text := "PID       ID                   SERVER    DEVICE             NAMESPACE    COMMAND\n"
	for _, c := range clients {
		f := strings.Fields(c)
		text += fmt.Sprintf("%s  0  %s  GPU-cb1213a3-d6a4-be7f  %s  %s\n", f[0], f[1], f[2], strings.Join(f[3:], " "))
	}
	_, err := io.WriteString(out, text)
	return err
}

// terminate takes the client whose line begins so off the list.
func terminate(dir string, clients []string, beginning string, out io.Writer) error {
	left := slices.DeleteFunc(slices.Clone(clients), func(c string) bool { return strings.HasPrefix(c+" ", beginning) })
	if len(left) == len(clients) {
		_, err := fmt.Fprintf(out, "Client %s not found\n", strings.Fields(beginning)[0])
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "clients"), []byte(strings.Join(left, "\n")+"\n"), 0o666); err != nil {
		return fmt.Errorf("take client off: %w", err)
	}
	_, err := fmt.Fprintln(out, 0)
	return err
}
