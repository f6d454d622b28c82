package approval

// Changes returns every place where two VirtualMachines differ, in a fixed order.
// Both are decoded JSON: map[string]any, []any, string, bool, nil, and numbers as
// json.Number, int64 or float64. They are not modified.
//
// The change from old to new is allowed if and only if all returned places are allowed: every difference is at or below one of them. Above MaxTouched
// places, whole sections (spec, metadata.labels, …) are returned instead.
func Changes(old, new map[string]any) []Path {
	t := &touches{}
	before := map[string]section{}
	for _, s := range sections(old) {
		before[s.path.String()] = s
	}
	for _, s := range sections(new) {
		key := s.path.String()
		t.section(s.path, s.skip, before[key].value, s.value)
		delete(before, key)
	}
	for _, s := range before {
		t.section(s.path, s.skip, s.value, nil)
	}
	return t.result()
}

func (t *touches) section(path Path, skip func(string) bool, old, new any) {
	t.begin(path, skip)
	t.compare(old, new)
	t.end()
}

// compare adds the places at and below the current one where two values differ.
func (t *touches) compare(old, new any) {
	switch {
	case vacant(old) && vacant(new):
	case vacant(old):
		t.appeared(new)
	case vacant(new):
		t.disappeared(old)
	case t.tooDeep():
		if !same(old, new) {
			t.add()
		}
	default:
		t.compareKinds(old, new)
	}
}

func (t *touches) compareKinds(old, new any) {
	switch before := old.(type) {
	case map[string]any:
		if after, ok := new.(map[string]any); ok {
			t.compareMaps(before, after)
			return
		}
	case []any:
		if after, ok := new.([]any); ok {
			t.compareLists(before, after)
			return
		}
	default:
		if sameScalar(old, new) {
			return
		}
	}
	t.add()
}

func (t *touches) compareMaps(old, new map[string]any) {
	for key, before := range old {
		if t.evaluates(key) {
			t.into(Field(key), func() { t.compare(before, new[key]) })
		}
	}
	for key, after := range new {
		if _, both := old[key]; !both && t.evaluates(key) {
			t.into(Field(key), func() { t.compare(nil, after) })
		}
	}
}

func (t *touches) compareLists(old, new []any) {
	before, after := names(old), names(new)
	switch {
	case before != nil && after != nil:
		t.compareNamed(old, new, before, after)
	case len(old) != len(new):
		t.addInside(anyItem)
	default:
		for i := range old {
			t.into(Index(i), func() { t.compareItems(old[i], new[i]) })
		}
	}
}

// compareItems compares two items at the same position. An empty item is not the same as none, because it has a position.
func (t *touches) compareItems(old, new any) {
	if vacant(old) || vacant(new) {
		if !same(old, new) {
			t.add()
		}
		return
	}
	t.compare(old, new)
}

func (t *touches) compareNamed(old, new []any, before, after map[string]int) {
	for name := range before {
		if _, stays := after[name]; !stays {
			t.addInside(Item(name))
		}
	}
	last, reordered := -1, false
	for _, item := range new {
		name := nameOf(item)
		position, stays := before[name]
		if !stays {
			t.addInside(Item(name))
			continue
		}
		reordered = reordered || position < last
		last = position
		t.into(Item(name), func() { t.compare(old[position], item) })
	}
	if reordered {
		t.addInside(anyItem)
	}
}

// appeared adds the places of a value that was not there before.
func (t *touches) appeared(value any) {
	switch v := value.(type) {
	case map[string]any:
		switch {
		case t.tooDeep():
			t.add()
		case !hollow(v):
			t.compareMaps(nil, v)
		case !t.inPlainMap():
			t.addInside(anyField)
		}
	case []any:
		if names(v) == nil {
			t.addInside(anyItem)
			return
		}
		for _, item := range v {
			t.addInside(Item(nameOf(item)))
		}
	default:
		t.add()
	}
}

// disappeared adds the places of a value that is no longer there.
func (t *touches) disappeared(value any) {
	v, isMap := value.(map[string]any)
	switch {
	case !isMap:
		t.appeared(value) // lists and scalars go as they come
	case t.inPlainMap():
		t.compareMaps(v, nil)
	default:
		t.addInside(anyField)
	}
}
