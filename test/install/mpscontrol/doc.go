// Command mpscontrol stands in for NVIDIA's nvidia-cuda-mps-control, and for the daemon behind it: it reads one command
// from standard input and answers as the real one does.
//
// The daemon is the pipe directory (CUDA_MPS_PIPE_DIRECTORY): the file "clients" has its clients, a line each: "PID
// SERVER NAMESPACE COMMAND". Without that file no daemon answers. Commands are kept in the file "said", a line each,
// behind the time in RFC 3339 with nanoseconds. A client that is terminated leaves the list; its process is the
// caller's to end, as it is with the real daemon.
package main
