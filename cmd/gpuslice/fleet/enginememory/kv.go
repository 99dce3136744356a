package enginememory

import (
	"fmt"
	"math"
	"slices"
)

// Constants of engines.
const (
	blockTokens    = 16   // of a page of vLLM
	prefillTokens  = 2048 // that vLLM prefills at a time: the flag that Flags has
	stateBlocks    = 2    // vLLM's blocks of states for a sequence
	cellAlignment  = 256  // llama.cpp's cells of a sliding layer
	microBatch     = 512  // llama.cpp's tokens of a batch, which sliding layers keep beside the window
	slidingOfWhole = 0.8  // SGLang's tokens of sliding layers to those of the others
)

// cache is an engine's memory of tokens on a GPU.
type cache struct {
	perToken float64 // bytes, of each token that the engine counts
	bytes    float64 // of all requests
}

// kvElement is how a value of keys and values is kept.
type kvElement struct {
	bytes      float64
	stateBytes float64 // of a value of a state
}

// bytes is a layer's memory of one token on one of the GPUs that divide the model: at least one head each.
func (l *layer) bytes(gpus int, e kvElement) float64 {
	if l.latent > 0 {
		return float64(l.latent)*e.bytes + float64(l.index)
	}
	return 2 * float64(ceil(l.kvHeads, gpus)*l.headDim) * e.bytes
}

func (s state) bytes(gpus int, e kvElement) float64 {
	recurrent := e.stateBytes
	if s.wide {
		recurrent = 4
	}
	return (float64(s.recurrent)*recurrent + float64(s.convolution)*e.stateBytes) / float64(gpus)
}

func ceil(a, b int) int { return (a + b - 1) / b }

// cache is the cache of a run's engine.
func (m *model) cache(r *Run, e kvElement) (cache, error) {
	switch r.Engine {
	case vllm:
		return m.pages(r, e)
	case sglang: // full and sliding layers have a pool each, and states have a slot more than sequences
		share := slidingOfWhole
		if !m.has(full) {
			share = 1
		}
		return m.everyToken(r, e, share, r.Concurrency+1), nil
	case LlamaCPP:
		return m.cells(r, e), nil
	}
	return m.everyToken(r, e, 1, r.Concurrency), nil
}

// everyToken is the cache of an engine that keeps every token in layers with full attention, a share of the tokens in sliding ones, and so
// many states.
func (m *model) everyToken(r *Run, e kvElement, share float64, states int) (c cache) {
	for i := range m.layers {
		switch l := &m.layers[i]; l.kind {
		case full:
			c.perToken += l.bytes(r.TensorParallel, e)
		case sliding:
			c.perToken += share * l.bytes(r.TensorParallel, e)
		case linear:
			c.bytes += l.state.bytes(r.TensorParallel, e) * float64(states)
		}
	}
	c.perToken, c.bytes = c.perToken*float64(m.passes), c.bytes*float64(m.passes)
	c.bytes += c.perToken * r.tokens()
	return c
}

// cells is llama.cpp's: sliding layers keep the windows of all sequences and a batch.
func (m *model) cells(r *Run, e kvElement) (c cache) {
	for i := range m.layers {
		switch l := &m.layers[i]; {
		case l.shared || l.kind == nothing:
		case l.kind == linear:
			c.bytes += l.state.bytes(r.TensorParallel, e) * float64(r.Concurrency)
		default:
			cells := r.tokens()
			if l.kind == sliding {
				cells = min(cells, float64(ceil(l.window*r.Concurrency+microBatch, cellAlignment)*cellAlignment))
			}
			c.bytes += cells * l.bytes(r.TensorParallel, e)
		}
	}
	c.bytes *= float64(m.passes)
	c.perToken = c.bytes / r.tokens()
	return c
}

func (m *model) has(k kind) bool {
	return slices.ContainsFunc(m.layers, func(l layer) bool { return l.kind == k })
}

// group is the layers of one kind in vLLM, which it divides into groups of equal size.
type group struct {
	kind   kind
	window int
	bytes  float64 // of a token, or of a state
	layers int
}

// pages is vLLM's: layers of one kind form groups, each group has pages of one size for all its layers.
func (m *model) pages(r *Run, e kvElement) (cache, error) {
	groups := m.groups(r, e)
	if len(groups) < 2 || !m.has(sliding) && !m.has(linear) {
		var c cache // without the layers that share: they have no cache here
		for _, g := range groups {
			c.perToken += g.bytes * float64(g.layers)
		}
		c.bytes = c.perToken * r.tokens()
		if len(groups) == 1 && groups[0].kind == sliding {
			c.bytes = c.perToken * float64(groups[0].blocks(r.Context, blockTokens)*blockTokens*r.Concurrency)
		}
		return c, nil
	}
	size, page := groupSize(groups), 0.0 // page: bytes of a token of the widest layer
	for _, g := range groups {
		if g.kind != linear {
			page = max(page, g.bytes)
		}
	}
	if page == 0 {
		return cache{}, fmt.Errorf("no layer has attention")
	}
	block := blockTokens
	for _, g := range groups {
		if g.kind == linear {
			block = max(block, ceil(int(math.Ceil(g.bytes/page)), blockTokens)*blockTokens)
		}
	}
	count, blocks := 0, 0
	for _, g := range groups {
		n := ceil(g.layers, size)
		count += n
		blocks += n * g.blocks(r.Context, block*max(1, int(page/max(g.bytes, 1))))
	}
	pool := float64(size*block) * page // bytes of a block in all layers of a group
	c := cache{bytes: float64(blocks*r.Concurrency) * pool, perToken: float64(count*size) * page}
	if m.knowsStates() { // counts tokens by how many whole requests fit
		c.perToken = float64(blocks) * pool / float64(r.Context)
	}
	return c, nil
}

// knowsStates reports whether the model has linear layers, and the size of each layer's state.
func (m *model) knowsStates() bool {
	for i := range m.layers {
		if l := &m.layers[i]; l.kind == linear && l.state.recurrent+l.state.convolution == 0 {
			return false
		}
	}
	return m.has(linear)
}

// blocks is the number of blocks that one sequence takes of a group's layer.
func (g *group) blocks(context, tokens int) int {
	switch g.kind {
	case linear:
		return stateBlocks
	case sliding:
		return min(ceil(context, tokens), ceil(g.window-1+prefillTokens, tokens)) + 1
	}
	return ceil(context, tokens)
}

// groups are the kinds of layers, in the order in which they appear.
func (m *model) groups(r *Run, e kvElement) (all []group) {
	for i := range m.layers {
		l := &m.layers[i]
		if l.kind == nothing || l.shared {
			continue
		}
		g := group{kind: l.kind, window: l.window, bytes: l.bytes(r.TensorParallel, e)}
		if l.kind == linear {
			g.bytes = l.state.bytes(r.TensorParallel, e)
		}
		at := slices.IndexFunc(all, func(o group) bool { return o.kind == g.kind && o.window == g.window && o.bytes == g.bytes })
		if at < 0 {
			all, at = append(all, g), len(all)
		}
		all[at].layers += m.passes
	}
	return all
}

// groupSize is the count of the rarer kind, or of the more frequent one where that wastes less.
func groupSize(groups []group) int {
	least, most := groups[0].layers, 0
	for _, g := range groups {
		least, most = min(least, g.layers), max(most, g.layers)
	}
	if float64(most) < 1.5*float64(least) {
		return most
	}
	return least
}
