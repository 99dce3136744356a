// Command images builds gpuslice's container images without a container tool, and pushes them: see README.md. Package
// recipe has their content.
package main
