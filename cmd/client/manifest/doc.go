// Package manifest reads users' documents: files, directories and standard input, the objects in them, the pod
// templates of workloads, and policies.
package manifest
