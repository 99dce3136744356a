// Package images builds the container images of the Dockerfile, on bases made of Debian's packages, and runs what is in them.
package images
