// Package draw draws fleets as one HTML file.
//
//	inventory.Fleet -> view, with slices placed on devices (view.go, place.go) -> JSON in page.html, drawn by page.js in the browser
package draw

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
)

//go:embed page.html
var document string

//go:embed page.css
var style string

//go:embed page.js
var script string

// Fleet is a fleet to draw. Of two, the page shows what the second changes.
type Fleet struct {
	Title string
	*inventory.Fleet
}

// Page writes the page of one or two fleets.
func Page(out io.Writer, fleets ...Fleet) error {
	var views []*view
	for _, f := range fleets {
		views = append(views, viewOf(f.Title, f.Fleet))
	}
	return write(out, views)
}

// write writes the page. Names in it are JSON in which <, > and & are escaped, so that none of them can end the element; the policy
// of the page runs the one script whose hash it names.
func write(out io.Writer, views []*view) error {
	data, err := json.Marshal(views)
	if err != nil {
		return fmt.Errorf("%w: write the page: %w", cli.ErrInternal, err)
	}
	policy := fmt.Sprintf("default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'",
		hash(style), hash(script))
	head, tail, _ := strings.Cut(document, "DATA")
	head = strings.NewReplacer("POLICY", policy, "STYLE", style).Replace(head)
	tail = strings.Replace(tail, "SCRIPT", script, 1)
	if _, err := io.Copy(out, io.MultiReader(strings.NewReader(head), bytes.NewReader(data), strings.NewReader(tail))); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// hash is a text as a content security policy names it.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
