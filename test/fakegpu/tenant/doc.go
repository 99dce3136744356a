// Command tenant plays a program that holds GPU memory: the fake GPU library
// reads how much off its command line, which it rewrites as it goes.
//
//	tenant [STEP ...]
//
// Steps are taken in order, each an argument of its own or not ("hold 4GiB" is one or two);
// after the last it stays as it is. Amounts are whole MiB or GiB.
//
//	hold 4GiB            hold so much from now on; "hold 0MiB" frees all
//	grow 4GiB 9GiB 2s    from the one to the other in so long, evenly
//	spike 9GiB 500ms     hold so much so long, then what was held before
//	wait 2s              do nothing
//	fork 2 4GiB          start so many processes that hold so much each, and outlive this one
//	say crossed          print the word as a line
//	reexec               become the same program again: same PID, same memory
//	leave                exit with status 0
//
// Attacks on who looks at it are steps, too:
//
//	occupy 100           open so many sockets in the pod's network namespace
//	fifo /data/a/log     put a FIFO in the place of a mounted file
//	chroot /proc         hide its mounts
//	end-first-thread     become a zombie that runs on
//	crowd 24             start a process that has so many threads, by the step "threads 24"
//	end-threads          end all threads of that process but the last, and keep them as zombies
//
// What it is, which holds from the start and for all its children:
//
//	device 1             the device: a minor number, "1.0" for a MIG instance, or a UUID. Else
//	                     the first that NVIDIA_VISIBLE_DEVICES names, else 0
//	node t7              the node that its words name, see package fakegpu
//	kind M+C             C (default), G or M+C
//	ignore-term          survive SIGTERM, and say so
//	fork-on-term 4GiB    answer SIGTERM with a new process that holds so much
//	exit-after 3s        exit with status 0 so long after the start, or after the last reexec
//
// Each 200 ms it prints a line: a number, its PID, the MiB that it holds and the longest delay
// of any such line in milliseconds, so that a test can prove that it never noticed a thing:
//
//	beat 17 pid=8 held=4096 late=1
//
// On SIGTERM it prints "term" and exits with status 143. It needs no shell, no file it could
// write, and no particular user.
//
// The words are rewritten in place, as setproctitle does: eight digits, in one store, so that a
// reader sees the old amount or the new one. That wants an argument with room, so it first
// runs itself again with one.
package main
