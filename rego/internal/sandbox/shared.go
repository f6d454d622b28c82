package sandbox

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// maxSharedCalls is how many results of functions are shared by the policies of a
// request, so that a policy which calls one often does not fill the memory.
const maxSharedCalls = 256

// Shared are the results of the rules and functions of data.lib for one input. They belong to the Input, so that the images of a VM are listed
// once for a request with a hundred policies.
type Shared struct {
	mu     sync.RWMutex
	values map[ast.String]*ast.Term // nil: the rule is undefined
	calls  topdown.VirtualCache
	left   int // of calls, below maxSharedCalls
	yaml   map[ast.String]sharedDocument
}

// Helper returns the value of a rule of data.lib, nil if it is undefined, and whether it is cached.
func (s *Shared) Helper(name ast.String) (*ast.Term, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, cached := s.values[name]
	return value, cached
}

// Undefined stores that a rule of data.lib is undefined.
func (s *Shared) Undefined(name ast.String) { s.put(name, nil) }

// get is like topdown.VirtualCache's Get.
func (s *Shared) get(name ast.String) (*ast.Term, bool) {
	s.mu.RLock()
	value, known := s.values[name]
	s.mu.RUnlock()
	return value, known && value == nil
}

func (s *Shared) put(name ast.String, value *ast.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[ast.String]*ast.Term{}
	}
	s.values[name] = value
}

// call returns the result of a function and its arguments, or nil when it is not cached.
func (s *Shared) call(ref ast.Ref) *ast.Term {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.calls == nil {
		return nil
	}
	value, _ := s.calls.Get(ref)
	return value
}

// putCall reports whether it has stored the result.
func (s *Shared) putCall(ref ast.Ref, value *ast.Term) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls, s.left = topdown.NewVirtualCache(), maxSharedCalls
	}
	if s.left == 0 {
		return false
	}
	s.left--
	s.calls.Put(ref, value)
	return true
}

// sharedDocument is a text in YAML that has been decoded, or the error.
type sharedDocument struct {
	value *ast.Term
	err   error
}

// maxSharedDocuments is how many decoded texts are shared.
const maxSharedDocuments = 8

// document decodes a text once for all policies.
func (s *Shared) document(text ast.String, decode func() (*ast.Term, error)) (*ast.Term, error) {
	s.mu.RLock()
	cached, ok := s.yaml[text]
	s.mu.RUnlock()
	if ok {
		return cached.value, cached.err
	}
	value, err := decode()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.yaml == nil {
		s.yaml = map[ast.String]sharedDocument{}
	}
	if len(s.yaml) < maxSharedDocuments {
		s.yaml[text] = sharedDocument{value, err}
	}
	return value, err
}

// Patterns caches compiled regular expressions for all policies.
type Patterns struct {
	mu           sync.RWMutex
	byText       map[string]pattern
	instructions int
}

// maxCachedInstructions bounds the cache at some tens of MiB.
const maxCachedInstructions = 500_000

func (p *Patterns) get(text string) (pattern, error) {
	p.mu.RLock()
	known, ok := p.byText[text]
	p.mu.RUnlock()
	if ok {
		return known, nil
	}
	compiled, err := compilePattern(text)
	if err != nil {
		return pattern{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.instructions += compiled.instructions + 100; p.byText == nil || p.instructions > maxCachedInstructions {
		p.byText, p.instructions = map[string]pattern{}, compiled.instructions+100
	}
	p.byText[text] = compiled
	return compiled, nil
}
