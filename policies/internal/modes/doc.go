// Package modes are the modes of a policy: of its namespaces, of workload templates and of ResourceQuotas.
package modes
