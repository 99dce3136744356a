//go:build amd64

package undead

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// EndThreads makes every thread of a process exit but the last. They stay zombies as
// long as the thread lives that calls this, which has to be kept.
func EndThreads(pid int) error {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("read the threads of %d: %w", pid, err)
	}
	var tids []int
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			return fmt.Errorf("read the threads of %d: %w", pid, err)
		}
		tids = append(tids, tid)
	}
	slices.Sort(tids)
	for _, tid := range tids[:len(tids)-1] {
		if err := end(tid); err != nil {
			return fmt.Errorf("end thread %d of %d: %w", tid, pid, err)
		}
	}
	return nil
}

// end lets a thread make the system call exit where it stops.
func end(tid int) error {
	if err := syscall.PtraceAttach(tid); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tid, &status, syscall.WALL, nil); err != nil {
		return err
	}
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	const instruction = 2 // bytes that a system call takes, after which a thread waits
	regs.Rip -= instruction
	regs.Rax, regs.Orig_rax, regs.Rdi = syscall.SYS_EXIT, ^uint64(0), 0
	if err := syscall.PtraceSetRegs(tid, &regs); err != nil {
		return err
	}
	return syscall.PtraceCont(tid, 0)
}
