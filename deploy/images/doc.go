// Command images builds gpuslice's container images without a container tool, and pushes them: see README.md. What they
// hold is in package recipe.
package main
