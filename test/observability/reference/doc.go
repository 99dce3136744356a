// Package reference writes the pages that list metrics, from the registries that serve them.
//
// The one idea: nothing is said on such a page that the code does not say. A metric is listed because it is registered, with
// its name, labels and help as they are served.
package reference
