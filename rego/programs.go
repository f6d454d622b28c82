package rego

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"
	"weak"
)

// programs are the compiled programs in use. Policies that differ in their names and parameters only share one: it is compiled once, held once, and its
// memory is warm when the second policy of a request is evaluated.
type programs struct {
	mu    sync.Mutex
	byKey map[programKey]weak.Pointer[program]
	// sweepAt is the number of programs at which those that no policy uses any more are removed from the map.
	sweepAt int
}

// programKey is the digest of everything that the compilation of a policy depends on.
type programKey [sha256.Size]byte

// keyOf returns the key of a definition whose kinds are complete and whose parameters have been checked. Parameters have types of their own only
// without a schema. The input has those of schemas with this digest.
func keyOf(d Definition, kinds []string, schemas [sha256.Size]byte) (programKey, bool) {
	parameters := d.Parameters
	names := []string{}
	if d.Schema != nil {
		for name := range parameters {
			names = append(names, name)
		}
		slices.Sort(names)
		parameters = nil
	}
	text, err := json.Marshal(struct {
		Source             string
		Kinds, Names       []string
		Schema, Parameters map[string]any
		Schemas            []byte
		AnyFields          bool
		Data               map[string]bool
		PerObject          map[string]map[string]any
	}{d.Source, kinds, names, d.Schema, parameters, schemas[:], d.AnyFields, referenceNames(d), perObjectSchemas(d)})
	return sha256.Sum256(text), err == nil
}

// get returns the program of a key, or nil.
func (p *programs) get(key programKey) *program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKey[key].Value()
}

const minimumSweep = 256

func (p *programs) put(key programKey, compiled *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKey == nil {
		p.byKey, p.sweepAt = map[programKey]weak.Pointer[program]{}, minimumSweep
	}
	p.byKey[key] = weak.Make(compiled)
	if len(p.byKey) < p.sweepAt {
		return
	}
	for key, pointer := range p.byKey {
		if pointer.Value() == nil {
			delete(p.byKey, key)
		}
	}
	p.sweepAt = max(minimumSweep, 2*len(p.byKey))
}
