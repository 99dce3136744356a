package main

const acceptedPolicies = `accepted: documents with apiVersion: gpuslice.dev/v1, or ConfigMaps with the label gpuslice.dev/policy: "true" and the key policy.yaml`

// leftOver is what lay beside policies.
type leftOver struct {
	objects []object
	unread  []documentError
}

// readPolicies reads the policies that paths hold as the reader says, and returns what lay beside them.
func readPolicies(r *reader, paths []string, as policyReader) ([]policyDocument, leftOver) {
	var found []policyDocument
	var others leftOver
	for _, path := range paths {
		for _, d := range r.documents([]string{path}, maxManifest) {
			reader := as
			reader.named = d.at.file == path || path == stdinPath
			if reader.barePolicy(d) {
				found = append(found, reader.bare(d))
				continue
			}
			objects, unread := d.objects()
			others.unread = append(others.unread, unread...)
			for _, o := range objects {
				if p, ok := reader.configMap(o); ok {
					found = append(found, p)
					continue
				}
				others.objects = append(others.objects, o)
			}
		}
	}
	return found, others
}
