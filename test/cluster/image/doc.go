// Package image packs programs of this machine into container images for the test cluster, with one layer that holds the
// files named and nothing else. The images that users get are those of the Dockerfile.
package image
