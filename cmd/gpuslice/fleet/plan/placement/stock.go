package placement

import (
	"cmp"
	"math"
	"slices"
)

// Waits is where a pod goes that fits nowhere.
const Waits = -1

// Node holds the free resources of a node.
type Node struct {
	CPU      int64 // thousandths of a core
	Memory   int64 // MiB
	Pods     int64 // 0: no limit is known, less: none
	Kind     int
	Extended map[string]int64
	Parts    []int64 // free parts of each device, for claims
}

// Pod is a pod's request. The scheduler takes pods in the order of a list.
type Pod struct {
	CPU, Memory int64
	Extended    map[string]int64
	Part        int64  // of one device, by a claim
	Allowed     []bool // by kind of node; nil: all
	Node        int    // index of the node where it runs already, from 1; 0: it is to be placed
}

// The scheduler's figures in its scores for a pod that requests none: k8s.io/kubernetes/pkg/scheduler/util, v1.36.
const (
	defaultCPU    = 100
	defaultMemory = 200
)

const highestScore = 100

// stock is the state of a simulation.
type stock struct {
	nodes []stockNode
	names map[string]int // of extended resources
	start int            // where the search begins
	best  []int          // the last result of find
}

type stockNode struct {
	kind            int
	pods            int64    // that it takes
	cpu, memory     [2]int64 // allocatable, requested
	scored          [2]int64 // CPU and memory with defaults for pods without requests
	free            []int64  // of extended resources, by index
	parts           []int64
	currentBalanced int64
}

type amount struct {
	index int
	count int64
}

// Stock places pods as the kube-scheduler does with its default configuration, and returns the index of each pod's node, or Waits. Of
// the default scores, LeastAllocated and BalancedAllocation of CPU and memory count; the others are equal where pods prefer no node.
// Ties, which the scheduler breaks at random, go to the node that it finds first. Pods preempt none.
func Stock(nodes []Node, pods []Pod) []int {
	s := newStock(nodes, pods)
	placed := make([]int, len(pods))
	requests := make([][]amount, len(pods))
	for i := range pods {
		requests[i] = s.amounts(pods[i].Extended)
		if at := pods[i].Node - 1; at >= 0 {
			placed[i] = at
			s.nodes[at].take(&pods[i], requests[i])
		}
	}
	for i := range pods {
		if pods[i].Node > 0 {
			continue
		}
		placed[i] = Waits
		if best := s.find(&pods[i], requests[i]); len(best) > 0 {
			placed[i] = best[0]
			s.nodes[placed[i]].take(&pods[i], requests[i])
		}
	}
	return placed
}

func newStock(nodes []Node, pods []Pod) *stock {
	s := &stock{names: map[string]int{}}
	for i := range nodes {
		for name := range nodes[i].Extended {
			s.index(name)
		}
	}
	for i := range pods {
		for name := range pods[i].Extended {
			s.index(name)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		sn := stockNode{kind: n.Kind, pods: cmp.Or(n.Pods, math.MaxInt64), free: make([]int64, len(s.names)), parts: slices.Clone(n.Parts)}
		sn.cpu[0], sn.memory[0] = n.CPU, n.Memory
		for name, count := range n.Extended {
			sn.free[s.names[name]] = count
		}
		sn.currentBalanced = sn.balanced(0, 0)
		s.nodes = append(s.nodes, sn)
	}
	return s
}

func (s *stock) index(name string) {
	if _, known := s.names[name]; !known {
		s.names[name] = len(s.names)
	}
}

func (s *stock) amounts(extended map[string]int64) (all []amount) {
	for name, count := range extended {
		all = append(all, amount{s.names[name], count})
	}
	return all
}

// find returns the nodes with the highest score, in the order in which it finds them. It looks from where the last search ended, until
// it has as many nodes as the scheduler scores.
func (s *stock) find(p *Pod, requests []amount) []int {
	wanted, highest, found := s.wanted(), int64(-1), 0
	cpu, memory := scored(p)
	s.best = s.best[:0]
	i := s.start
	for range s.nodes {
		n := &s.nodes[i]
		if n.fits(p, requests) {
			switch score := n.score(p, cpu, memory); {
			case score > highest:
				highest, s.best = score, append(s.best[:0], i)
			case score == highest:
				s.best = append(s.best, i)
			}
			found++
		}
		if i++; i == len(s.nodes) {
			i = 0
		}
		if found == wanted {
			break
		}
	}
	s.start = i
	return s.best
}

// wanted is numFeasibleNodesToFind of the scheduler without percentageOfNodesToScore.
func (s *stock) wanted() int {
	const all, least = 100, 5
	n := len(s.nodes)
	if n < all {
		return n
	}
	return max(n*max(50-n/125, least)/100, all)
}

func (n *stockNode) fits(p *Pod, requests []amount) bool {
	if n.cpu[0]-n.cpu[1] < p.CPU && p.CPU > 0 || n.memory[0]-n.memory[1] < p.Memory && p.Memory > 0 || n.pods < 1 {
		return false
	}
	if p.Allowed != nil && !p.Allowed[n.kind] {
		return false
	}
	for _, r := range requests {
		if n.free[r.index] < r.count {
			return false
		}
	}
	return p.Part == 0 || n.device(p.Part) >= 0
}

// device is the first with room for a claim, as the scheduler's allocator takes it.
func (n *stockNode) device(part int64) int {
	return slices.IndexFunc(n.parts, func(free int64) bool { return free >= part })
}

func (n *stockNode) take(p *Pod, requests []amount) {
	n.pods--
	n.cpu[1] += p.CPU
	n.memory[1] += p.Memory
	cpu, memory := scored(p)
	n.scored[0] += cpu
	n.scored[1] += memory
	for _, r := range requests {
		n.free[r.index] -= r.count
	}
	if at := n.device(p.Part); p.Part > 0 && at >= 0 {
		n.parts[at] -= p.Part
	}
	n.currentBalanced = n.balanced(0, 0)
}

func scored(p *Pod) (cpu, memory int64) {
	return cmp.Or(p.CPU, defaultCPU), cmp.Or(p.Memory, defaultMemory)
}

// score is the sum of LeastAllocated and BalancedAllocation, each of weight 1, for a pod of which so much CPU and memory is scored.
func (n *stockNode) score(p *Pod, cpu, memory int64) int64 {
	least := leastAllocated(n.cpu[0], n.scored[0]+cpu) + leastAllocated(n.memory[0], n.scored[1]+memory)
	if n.cpu[0] > 0 && n.memory[0] > 0 {
		least /= 2
	}
	if p.CPU == 0 && p.Memory == 0 {
		return least // the scheduler leaves balance out for pods without requests
	}
	return least + highestScore/2 + (highestScore/2+n.balanced(p.CPU, p.Memory)-n.currentBalanced)/2
}

// leastAllocated is higher where less of a resource is requested.
func leastAllocated(allocatable, requested int64) int64 {
	if allocatable == 0 || requested > allocatable {
		return 0
	}
	return (allocatable - requested) * highestScore / allocatable
}

// balanced is higher where CPU and memory are requested in equal parts.
func (n *stockNode) balanced(cpu, memory int64) int64 {
	if n.cpu[0] == 0 || n.memory[0] == 0 {
		return highestScore
	}
	difference := min(float64(n.cpu[1]+cpu)/float64(n.cpu[0]), 1) - min(float64(n.memory[1]+memory)/float64(n.memory[0]), 1)
	return int64((1 - math.Abs(difference/2)) * highestScore)
}
