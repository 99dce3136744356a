package audit

import (
	"bytes"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
)

// Depths of the keys that reviewed looks at: nothing is done for those of other depths, of which a text may have many.
const (
	depthOfLabels    = 3
	depthOfResources = 6
)

// requesting are places by which the webhooks' match conditions send a new pod to the webhook.
var requesting = regexp.MustCompile(`^/metadata/labels/gpuslice\.dev~1|` +
	`^/spec/(initContainers|containers)/[0-9]+/resources/(limits|requests)/(nvidia\.com|deviceclass\.resource\.kubernetes\.io)~1`)

// reviewed reports whether a pod that is too large to be read is surely sent to the webhook: it has a label of gpuslice's or requests
// a GPU. The text is read once, and nothing of it is kept. The conditions send other pods too, which this does not find.
func reviewed(text []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := d.ReadToken()
		if err != nil { // the end, too
			return false
		}
		depth := d.StackDepth()
		if token.Kind() != '"' || depth != depthOfLabels && depth != depthOfResources {
			continue
		}
		if kind, read := d.StackIndex(depth); kind == '{' && read%2 == 1 && requesting.MatchString(string(d.StackPointer())) {
			return true
		}
	}
}
