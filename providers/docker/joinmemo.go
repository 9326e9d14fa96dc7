package docker

import "sync"

// joinMemo remembers the joins of containers by their IDs, so that a look each second does not inspect
// everybody's containers each second.
type joinMemo struct {
	mu   sync.Mutex
	seen map[string][]join
}

// of is what is known of a container, or what read finds out.
func (m *joinMemo) of(id string, read func() ([]join, error)) ([]join, error) {
	m.mu.Lock()
	known, ok := m.seen[id]
	m.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := read() // two at once may both ask, and get the same
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = map[string][]join{}
	}
	m.seen[id] = found
	return found, nil
}
