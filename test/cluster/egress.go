package cluster

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// egress is the proxy through which the API server dials Services. It knows each endpoint address that
// stands in an EndpointSlice, and the listener of ours that is meant by it.
//
// The alternative, a network namespace with real addresses, needs privileges that many machines do not
// give; and kubectl, tests and webhooks would all have to live inside it.
type egress struct {
	listener net.Listener

	mu    sync.Mutex
	next  uint32
	real  map[netip.Addr]string
	alias map[string]netip.Addr
}

// virtualBase is the start of 198.18.0.0/15, which is routed nowhere (RFC 2544). An EndpointSlice may not
// hold loopback addresses.
const virtualBase = 198<<24 | 18<<16

// newEgress serves on a new unix socket at path until close.
func newEgress(path string) (*egress, error) {
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the API server's connections to Services: %w", err)
	}
	e := &egress{listener: l, real: map[netip.Addr]string{}, alias: map[string]netip.Addr{}}
	go e.serve()
	return e, nil
}

// address returns the address by which the API server reaches backend, a host:port of this machine.
func (e *egress) address(backend string) netip.Addr {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a, ok := e.alias[backend]; ok {
		return a
	}
	e.next++
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], virtualBase+e.next)
	a := netip.AddrFrom4(ip)
	e.alias[backend], e.real[a] = a, backend
	return a
}

func (e *egress) serve() {
	for {
		conn, err := e.listener.Accept()
		if err != nil {
			return // closed
		}
		go e.connect(conn)
	}
}

// connect answers one CONNECT request and carries bytes until both sides have closed.
func (e *egress) connect(client net.Conn) {
	defer client.Close()
	in := bufio.NewReader(client)
	req, err := http.ReadRequest(in)
	if err != nil || req.Method != http.MethodConnect {
		fmt.Fprint(client, "HTTP/1.1 400 Bad Request\r\n\r\n")
		return
	}
	backend, err := e.dial(req.Host, req.RequestURI)
	if err != nil {
		fmt.Fprintf(client, "HTTP/1.1 502 %s\r\n\r\n", err)
		return
	}
	defer backend.Close()
	if _, err := fmt.Fprint(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { carry(backend, in) })
	both.Go(func() { carry(client, backend) })
	both.Wait()
}

// dial connects to the listener behind the endpoint named in the request line.
func (e *egress) dial(_, endpoint string) (net.Conn, error) {
	at, err := netip.ParseAddrPort(endpoint)
	if err != nil {
		return nil, fmt.Errorf("no endpoint %s", endpoint)
	}
	e.mu.Lock()
	backend, ok := e.real[at.Addr()]
	e.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("no endpoint %s", endpoint)
	}
	return net.Dial("tcp", backend)
}

// carry copies until from ends, then closes to for writing.
func carry(to net.Conn, from io.Reader) {
	io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
}

func (e *egress) close() { e.listener.Close() }
