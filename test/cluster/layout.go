package cluster

import (
	"fmt"
	"net"

	"github.com/gpuslice/gpuslice/test/cluster/box"
)

// layout holds the addresses and ports of the control plane.
type layout struct {
	bind, host       string // where the API server listens, and how it is reached
	etcd, peer, port int
	node             bool // there is a kubelet
}

// loopback returns a layout beside which others have room.
func loopback() (layout, error) {
	ports, err := freePorts(3)
	if err != nil {
		return layout{}, err
	}
	return layout{bind: "127.0.0.1", host: "127.0.0.1", etcd: ports[0], peer: ports[1], port: ports[2]}, nil
}

// boxed returns the layout inside a box, where the usual ports are free and pods reach the API server by
// its Service address, which is one of the box's own.
func boxed() layout {
	return layout{bind: "0.0.0.0", host: box.NodeIP, etcd: 2379, peer: 2380, port: 443, node: true}
}

func (l layout) url() string { return fmt.Sprintf("https://%s:%d", l.host, l.port) }

// hosts returns the addresses for which the API server needs a certificate.
func (l layout) hosts() []string { return []string{"127.0.0.1", l.host, box.ServiceIP} }

// freePorts returns n loopback ports that were free a moment ago, all different.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
