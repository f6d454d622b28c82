package proofs

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	policyset "github.com/vmstencil/stencil/policies/evaluation"
	"github.com/vmstencil/stencil/reconcilers/internal/fingerprint"
	"github.com/vmstencil/stencil/rego"
)

// maximumNamespaces is the maximum number of namespaces that are decided for a template and an approval.
const maximumNamespaces = 8

// distinction compares namespaces as the policies do: by the labels that select policies, and by what policies read of input.namespace and
// input.request.namespace. The name of the namespace in input.object does not count.
type distinction struct {
	selecting []policyset.Entry
	reads     rego.Reads
}

func distinctionOf(set *policyset.Set) *distinction {
	d := &distinction{}
	for _, entry := range set.Entries() {
		if entry.Match.Namespaces != nil {
			d.selecting = append(d.selecting, entry)
		}
		if policy, known := entry.Policy.(*rego.Policy); known {
			d.reads.AddWithin(policy, "namespace")
			d.reads.AddWithin(policy, "request", "namespace")
		}
	}
	return d
}

// read returns a fingerprint of what the policies read of a namespace.
func (d *distinction) read(namespace rego.Namespace) (fingerprint.Fingerprint, error) {
	if d.reads.Empty() {
		return fingerprint.Fingerprint{}, nil
	}
	input, err := rego.NewInput(rego.Document{Namespace: namespace, Request: rego.Request{Namespace: namespace.Name}})
	if err != nil {
		return fingerprint.Fingerprint{}, fmt.Errorf("showing namespace %s to policies: %w", namespace.Name, err)
	}
	return d.reads.Digest(input), nil
}

// class returns a text that is equal for namespaces that the policies cannot tell apart.
func (d *distinction) class(at place) string {
	text := string(at.read[:])
	for i := range d.selecting {
		text += fmt.Sprintf(" %t", d.selecting[i].Match.Namespaces.Matches(labels.Set(at.Labels)))
	}
	return text
}

// place is a namespace in which a question is decided.
type place struct {
	rego.Namespace
	read fingerprint.Fingerprint
}

// places are the namespaces of an approval.
type places struct {
	decided []place
	// more is the number of namespaces that differ from these, and are not decided.
	more int
}

// placesIn returns the first of each class of namespaces, given by name and sorted.
func (c *check) placesIn(ctx context.Context, names []string) (places, error) {
	var found places
	known := map[string]bool{}
	for _, name := range names {
		one, err := c.place(ctx, name)
		if err != nil {
			return found, err
		}
		class := c.distinction.class(one)
		switch {
		case known[class]:
		case len(found.decided) == maximumNamespaces:
			found.more++
		default:
			found.decided = append(found.decided, one)
		}
		known[class] = true
	}
	return found, nil
}

// place returns a namespace. One that is missing, because it is being deleted or because the watch is behind, has no labels and annotations, and the next
// check corrects the result.
func (c *check) place(ctx context.Context, name string) (place, error) {
	one := place{Namespace: rego.Namespace{Name: name}}
	if c.distinction.constant() {
		// Nothing reads them, and a large cluster has thousands.
		return one, nil
	}
	one.Labels, one.Annotations, _ = c.options.Namespaces.Namespace(ctx, name)
	read, err := c.distinction.read(one.Namespace)
	one.read = read
	return one, err
}

// constant reports whether the policies cannot tell any namespaces apart.
func (d *distinction) constant() bool { return len(d.selecting) == 0 && d.reads.Empty() }
