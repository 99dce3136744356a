// Package image packs programs into container images without a container tool: a docker-archive, which
// `ctr images import` takes, with one layer that holds the files named and nothing else.
package image
