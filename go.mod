module github.com/gpuslice/gpuslice

go 1.26.0
