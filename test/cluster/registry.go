package cluster

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster/image"
)

// anyName is a request for a manifest or layer of an image.
var anyName = regexp.MustCompile(`^/v2/.+/(manifests|blobs)/([^/]+)$`)

// serveAnyName makes every image that the node lacks be i, by any name and tag. It serves for as long as this process lives, and returns
// the folder in which containerd finds it.
func (n *Node) serveAnyName(i image.Image) (string, error) {
	manifest, blobs, err := i.Build()
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("serve images: %w", err)
	}
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			part := anyName.FindStringSubmatch(req.URL.Path)
			if part == nil {
				return // whether this is a registry
			}
			digest, mediaType := part[2], "application/octet-stream"
			if part[1] == "manifests" {
				mediaType = image.Manifest
				if !isDigest.MatchString(digest) {
					digest = manifest
				}
			}
			blob, ok := blobs[digest]
			if !ok {
				http.NotFound(w, req)
				return
			}
			w.Header().Set("Content-Type", mediaType)
			w.Header().Set("Docker-Content-Digest", digest)
			http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(blob))
		}))
	}()
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
