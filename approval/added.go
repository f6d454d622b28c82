package approval

// Added returns, in a fixed order, every place in spec at which a stored VirtualMachine has something that rendered, the result of its template, does
// not have. Places where both have a value are not compared. A zero counts as no value, because clients written in Go send one for every field that
// their types require. Labels and annotations of the VirtualMachine itself are not compared: many tools store notes there, and they do not define the
// VM.
//
// Added does not identify the author of an addition; see ClusterAdditions for what the cluster adds. Neither object is modified. See Changes for how
// they are decoded, and for what is returned when there are very many places.
func Added(rendered, stored map[string]any) []Path {
	t := &touches{}
	t.begin(Path{Field("spec")}, nil)
	t.added(rendered["spec"], stored["spec"])
	t.end()
	return t.result()
}

func (t *touches) added(under, value any) {
	switch {
	case vacant(value) || zero(value):
		return
	case vacant(under):
		t.appeared(value)
		return
	case t.tooDeep():
		if !same(under, value) {
			t.add()
		}
		return
	}
	switch v := value.(type) {
	case map[string]any:
		below, _ := under.(map[string]any)
		for key, item := range v {
			t.into(Field(key), func() { t.added(below[key], item) })
		}
	case []any:
		below, _ := under.([]any)
		t.addedItems(below, v)
	}
}

func (t *touches) addedItems(under, list []any) {
	before, after := names(under), names(list)
	switch {
	case before != nil && after != nil:
		for name, at := range after {
			position, found := before[name]
			if !found {
				t.addInside(Item(name))
				continue
			}
			t.into(Item(name), func() { t.added(under[position], list[at]) })
		}
	case len(under) < len(list):
		t.addInside(anyItem)
	default:
		for i := range list {
			t.into(Index(i), func() { t.added(under[i], list[i]) })
		}
	}
}

// zero reports whether a value is an empty text, or 0 as a number or a quantity.
func zero(value any) bool {
	if text, is := value.(string); is {
		return text == "" || text == "0"
	}
	n, is := number(value)
	return is && n == "0"
}
