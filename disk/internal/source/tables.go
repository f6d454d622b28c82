package source

import "sync"

// Tables caches tables of an image by their offset in the file.
type Tables struct {
	source Source
	what   string
	length int
	limit  int

	lock   sync.Mutex
	tables map[int64][]byte
	// order holds the offsets of the tables in the order in which they were read, for eviction.
	order []int64
	next  int
}

// NewTables returns a cache of tables of a length in bytes. It retains at most memory bytes, and always 2 tables.
func NewTables(source Source, what string, length, memory int) *Tables {
	limit := max(memory/length, 2)
	return &Tables{source: source, what: what, length: length, limit: limit, tables: map[int64][]byte{}}
}

// At returns the table at an offset. The caller does not change it.
func (t *Tables) At(offset int64) ([]byte, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if table, ok := t.tables[offset]; ok {
		return table, nil
	}
	if err := t.source.Check(t.what, offset, int64(t.length)); err != nil {
		return nil, err
	}
	if len(t.order) == t.limit {
		delete(t.tables, t.order[t.next])
	}
	table := make([]byte, t.length)
	if err := t.source.Read(t.what, table, offset); err != nil {
		return nil, err
	}
	t.tables[offset] = table
	if len(t.order) < t.limit {
		t.order = append(t.order, offset)
	} else {
		t.order[t.next] = offset
		t.next = (t.next + 1) % t.limit
	}
	return table, nil
}
