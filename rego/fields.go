package rego

// Fields are the places in input that policies may read. They are immutable.
type Fields struct{ root fields }

// fields of one document. Of nil, nothing is read.
type fields struct {
	// whole is true if everything may be read.
	whole bool
	named map[string]*fields
	// each of a key that is not in named, and of the items of a list.
	each *fields
}

// wholeDocument are the fields of a document that is read as a whole.
var wholeDocument = &fields{whole: true}

// AllFields returns those of policies about which nothing is known.
func AllFields() *Fields { return &Fields{*wholeDocument} }

// NewFields returns what policies may read.
func NewFields(policies ...*Policy) *Fields {
	f := &Fields{}
	added := map[*program]bool{}
	for _, policy := range policies {
		if added[policy.program] {
			continue
		}
		added[policy.program] = true
		for _, path := range policy.program.reads {
			f.root.add(path)
		}
	}
	f.root.settle()
	return f
}

func (f *fields) add(path []string) {
	if f.whole {
		return
	}
	if len(path) == 0 {
		*f = *wholeDocument
		return
	}
	f.below(path[0]).add(path[1:])
}

// below returns the fields of a key, or of each, for a change.
func (f *fields) below(key string) *fields {
	if key == anyKey {
		if f.each == nil {
			f.each = &fields{}
		}
		return f.each
	}
	if f.named[key] == nil {
		if f.named == nil {
			f.named = map[string]*fields{}
		}
		f.named[key] = &fields{}
	}
	return f.named[key]
}

// settle adds what is read of each key to the named keys, so that a key is looked up once.
func (f *fields) settle() {
	if f.each != nil {
		for _, named := range f.named {
			named.include(f.each)
		}
		f.each.settle()
	}
	for _, named := range f.named {
		named.settle()
	}
}

func (f *fields) include(other *fields) {
	switch {
	case f.whole:
	case other.whole:
		*f = *wholeDocument
	default:
		for name, below := range other.named {
			f.below(name).include(below)
		}
		if other.each != nil {
			f.below(anyKey).include(other.each)
		}
	}
}

// of returns the fields of a key, nil if it is not read.
func (f *fields) of(key string) *fields {
	if f == nil || f.whole {
		return f
	}
	if named, ok := f.named[key]; ok {
		return named
	}
	return f.each
}

// item returns the fields of an item of a list.
func (f *fields) item() *fields {
	if f == nil || f.whole {
		return f
	}
	return f.each
}
