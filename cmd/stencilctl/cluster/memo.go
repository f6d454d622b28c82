package cluster

import "sync"

// memo caches what is read by its key. Concurrent calls for one key read it once. The zero value is ready for use.
type memo[K comparable, V any] struct {
	mutex sync.Mutex
	known map[K]func() V
}

// get returns the value of a key. read is called if the key is new.
func (m *memo[K, V]) get(key K, read func() V) V {
	m.mutex.Lock()
	value, found := m.known[key]
	if !found {
		if m.known == nil {
			m.known = map[K]func() V{}
		}
		value = sync.OnceValue(read)
		m.known[key] = value
	}
	m.mutex.Unlock()
	return value()
}
