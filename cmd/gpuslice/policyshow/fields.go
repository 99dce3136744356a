package policyshow

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/config"
)

// fromDefault is where a value comes from that no document sets.
const fromDefault = "default"

// source is a document that sets values.
type source struct {
	name   string
	fields map[string]bool   // that it writes
	before map[string]string // the values without it; nil: all of its values count
	only   map[string]string // its own values, where others are another document's; nil: whatever holds is its own
}

// newSource reads which fields a document writes. before is the policy that it tightens; nil: none.
func newSource(p *manifest.Policy, before *config.Policy) (source, error) {
	var written yaml.Node
	if err := yaml.Unmarshal(p.Text, &written); err != nil {
		return source{}, fmt.Errorf("%w: read %s: %w", cli.ErrInternal, p.At, err) // it was parsed before
	}
	s := source{name: p.Name, fields: map[string]bool{}}
	eachField(&written, "", func(path string, _ *yaml.Node) { s.fields[path] = true })
	if before == nil {
		return s, nil
	}
	var err error
	s.before, err = valuesOf(before)
	return s, err
}

// valuesOf are the values of a policy by their fields.
func valuesOf(p *config.Policy) (map[string]string, error) {
	_, all, err := fieldsOf(p)
	values := map[string]string{}
	for _, f := range all {
		values[f.Field] = string(f.Value)
	}
	return values, err
}

// sets reports whether a value is the document's.
func (s source) sets(f field) bool {
	if !s.fields[f.Field] || s.only != nil && s.only[f.Field] != string(f.Value) {
		return false
	}
	before, known := s.before[f.Field]
	return s.before == nil || !known || before != string(f.Value)
}

// take takes the values of a policy, each with the first source that sets it.
func (e *effective) take(p *config.Policy, sources []source) (err error) {
	if e.Document, e.Fields, err = fieldsOf(p); err != nil {
		return err
	}
	if p.TenantQuota != nil { // it holds beside the policy's
		_, beside, err := fieldsOf(&config.Policy{Quota: *p.TenantQuota})
		if err != nil {
			return err
		}
		for _, f := range beside {
			if f.Field != "apiVersion" {
				e.Fields = append(e.Fields, field{f.Field, f.Value, e.TenantPolicy})
			}
		}
	}
	for i := range e.Fields {
		f := &e.Fields[i]
		for _, s := range sources {
			if f.From == "" && s.sets(*f) {
				f.From = s.name
			}
		}
		if f.From == "" {
			f.From = fromDefault
		}
	}
	return nil
}

// fieldsOf are the document of a policy and its values, in the order of the document.
func fieldsOf(p *config.Policy) (json.RawMessage, []field, error) {
	document, err := json.Marshal(p)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: print policy %s: %w", cli.ErrInternal, p.Name, err)
	}
	var tree yaml.Node // JSON is YAML, and a node keeps the order
	if err := yaml.Unmarshal(document, &tree); err != nil {
		return nil, nil, fmt.Errorf("%w: print policy %s: %w", cli.ErrInternal, p.Name, err)
	}
	var all []field
	eachField(&tree, "", func(path string, value *yaml.Node) {
		if text, failed := jsonOf(value); failed != nil {
			err = failed
		} else if path != "apiVersion" && path != "kind" {
			all = append(all, field{Field: path, Value: text})
		}
	})
	return document, all, err
}

// eachField visits the values of a document: any but mappings, and empty ones.
func eachField(n *yaml.Node, path string, visit func(path string, value *yaml.Node)) {
	switch {
	case n.Kind == yaml.DocumentNode:
		eachField(n.Content[0], path, visit)
	case n.Kind != yaml.MappingNode || len(n.Content) == 0:
		visit(path, n)
	default:
		for i := 0; i+1 < len(n.Content); i += 2 {
			inner := n.Content[i].Value
			if path != "" {
				inner = path + "." + inner
			}
			eachField(n.Content[i+1], inner, visit)
		}
	}
}

func jsonOf(n *yaml.Node) (json.RawMessage, error) {
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, fmt.Errorf("%w: print a value: %w", cli.ErrInternal, err)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, fmt.Errorf("%w: print a value: %w", cli.ErrInternal, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
