package box

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// NodeName is the host name inside every box.
const NodeName = "node-1"

// setUpNetwork names the host and brings up the loopback interface, with the API server's Service address
// on it, and a bridge without ports that has the node's address: a kubelet denies loopback addresses, and
// not every kernel has dummy interfaces.
func setUpNetwork(string) error {
	if err := unix.Sethostname([]byte(NodeName)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer unix.Close(fd)
	bridge, err := unix.NewIfreq("node0")
	if err != nil {
		return fmt.Errorf("name bridge: %w", err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCBRADDBR, bridge); err != nil {
		return fmt.Errorf("make bridge: %w", err)
	}
	for _, i := range []struct{ name, address string }{
		{"lo", "127.0.0.1/8"}, {"lo:1", ServiceIP + "/32"}, {"node0", NodeIP + "/24"},
	} {
		if err := addAddress(fd, i.name, i.address); err != nil {
			return fmt.Errorf("configure interface %s: %w", i.name, err)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("forward packets of pods: %w", err)
	}
	return nil
}

// addAddress gives an interface (or an alias of one, NAME:n) its address and brings it up.
func addAddress(fd int, name, address string) error {
	ip, network, err := net.ParseCIDR(address)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		request uint
		value   net.IP
	}{{unix.SIOCSIFADDR, ip.To4()}, {unix.SIOCSIFNETMASK, net.IP(network.Mask)}} {
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := r.SetInet4Addr(step.value); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, step.request, r); err != nil {
			return os.NewSyscallError("set address", err)
		}
	}
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("bring up", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r))
}
