// Package scenarios holds the golden cases of gpuslice: a policy, nodes, a pod, and what comes out. One set serves the
// pure core, the HTTP handler and a real API server.
//
// A case is one txtar file under cases:
//
//	What the case is about, for people.
//	-- policy.yaml --      the policy document; it governs the pod's namespace
//	-- tenant.yaml --      the tenant's own document in the pod's namespace; may be absent
//	-- nodes --            names of files under nodes, one a line (without .yaml)
//	-- namespace.yaml --   labels of the namespace; may be absent
//	-- pod.yaml --         the pod as its author writes it
//	-- old.yaml --         the live pod, where the case is an UPDATE; may be absent
//	-- live.yaml --        in its place: the pod that the live one was made from, under the same policy and nodes
//	-- want/verdict --     the outcome, its reason, refusals and warnings, one a line
//	-- want/pod.diff --    what becomes of the pod, where something may: a unified diff, empty where nothing changes
//	-- want/guard.yaml --  what the guard was given, in cases whose name begins with "guard-"
//	-- want/planned.yaml -- the enforcement planned
//
// "go test ./policies -update" rewrites the want files and nothing else.
package scenarios
