package cluster

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gpuslice/gpuslice/test/cluster/image"
)

// anyName is a request for a manifest or layer of an image.
var anyName = regexp.MustCompile(`^/v2/.+/(manifests|blobs)/([^/]+)$`)

// serveAnyName makes every image that the node lacks be i, by any name and tag. It serves for as long as this process lives, and returns
// the folder in which containerd finds it.
func (n *Node) serveAnyName(i image.Image) (string, error) {
	built, remove, err := i.Build()
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve images: %w", err)
	}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	go func() {
		defer remove()
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if part := anyName.FindStringSubmatch(req.URL.Path); part != nil && req.Method != http.MethodPut {
				if part[1] == "manifests" && !isDigest.MatchString(part[2]) {
					part[2] = "latest"
				}
				req.URL.Path = "/v2/any/" + part[1] + "/" + part[2]
			}
			images.ServeHTTP(w, req)
		}))
	}()
	at, err := name.ParseReference(listener.Addr().String()+"/any:latest", name.Insecure)
	if err != nil {
		return "", fmt.Errorf("serve images: %w", err)
	}
	if err := remote.Write(at, built); err != nil {
		return "", fmt.Errorf("serve images: %w", err)
	}
	registries := filepath.Join(n.Dir, "registries")
	folder := filepath.Join(registries, "_default")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make folder of registries: %w", err)
	}
	text := fmt.Sprintf("[host.\"http://%s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", listener.Addr())
	if err := os.WriteFile(filepath.Join(folder, "hosts.toml"), []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("configure registries: %w", err)
	}
	return registries, nil
}

var isDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
