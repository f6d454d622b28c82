// Package intern stores texts once that occur in many objects, such as the keys of labels: a decoder makes a copy for each object.
package intern

import (
	"hash/maphash"
	"sync"
)

const (
	// slots limits the memory of a table that meets only different texts.
	slots = 1024
	// longest is the length from which texts are rarely equal, in bytes.
	longest = 256
)

// Texts is a table of the texts that occurred last. A text that occurs often is nearly always in it; a package such as unique stores all
// texts, and takes more memory for those that occur once than it saves. The zero value is an empty table, and nil is one that stores
// nothing. All methods are safe for concurrent use.
type Texts struct {
	mutex sync.Mutex
	slots [slots]string
	seed  maphash.Seed
	ready bool
}

// Of returns an equal text, which is stored once if it has occurred lately.
func (t *Texts) Of(text string) string {
	if t == nil || text == "" || len(text) > longest {
		return text
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !t.ready {
		t.seed, t.ready = maphash.MakeSeed(), true
	}
	slot := &t.slots[maphash.String(t.seed, text)%slots]
	if *slot != text {
		*slot = text
	}
	return *slot
}
