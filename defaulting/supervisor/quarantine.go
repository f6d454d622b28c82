package supervisor

import (
	"crypto/sha256"

	"k8s.io/utils/lru"
)

// quarantined is how many domains are remembered.
const quarantined = 1024

// quarantine remembers the domains on which workers died.
type quarantine struct{ domains *lru.Cache }

func newQuarantine() *quarantine { return &quarantine{domains: lru.New(quarantined)} }

func (q *quarantine) add(xml string) { q.domains.Add(sha256.Sum256([]byte(xml)), struct{}{}) }

func (q *quarantine) holds(xml string) bool {
	if q.domains.Len() == 0 {
		return false
	}
	_, ok := q.domains.Get(sha256.Sum256([]byte(xml)))
	return ok
}

func (q *quarantine) size() int { return q.domains.Len() }
