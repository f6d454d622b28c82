package evaluation

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/rego"
)

// Query holds the parts of a request that decide which policies apply to it.
type Query struct {
	// Operation is CREATE, UPDATE or DELETE. An audit of stored objects uses CREATE.
	Operation string
	Kind      string
	// Namespace is the name of the object's namespace, NamespaceLabels are its
	// labels.
	Namespace       string
	NamespaceLabels labels.Set
	// ObjectLabels are the labels of the object, ignored on DELETE; OldObjectLabels the
	// labels of the stored object, ignored on CREATE.
	ObjectLabels, OldObjectLabels labels.Set
	// Template is the template of the VirtualMachine, nil without one.
	Template *TemplateRef
	// User is the user that sends the request. Without HasUser, as in an audit,
	// subjects are ignored.
	User    rego.UserInfo
	HasUser bool
}

// TemplateRef holds the fields of a template that selectors use.
type TemplateRef struct {
	Namespace, Name string
	Labels          labels.Set
}

// criteria are the fields of a Match that are evaluated for one policy after the other,
// in a form in which that is fast. The zero value matches every query.
type criteria struct {
	namespaces, objects labels.Selector // nil: all
	templates           []TemplateMatch
	include, exclude    *subjects // nil: not given
}

func newCriteria(m *Match) criteria {
	c := criteria{
		namespaces: narrowing(m.Namespaces),
		objects:    narrowing(m.Objects),
		include:    newSubjects(m.Include),
		exclude:    newSubjects(m.Exclude),
	}
	for _, template := range m.Templates {
		template.Selector = narrowing(template.Selector)
		c.templates = append(c.templates, template)
	}
	return c
}

// narrowing returns nil for a selector that selects everything.
func narrowing(s labels.Selector) labels.Selector {
	if s == nil || s.Empty() {
		return nil
	}
	return s
}

func (c *criteria) meets(q *Query) bool {
	return (c.namespaces == nil || c.namespaces.Matches(q.NamespaceLabels)) &&
		c.selectsObject(q) &&
		c.selectsTemplate(q) &&
		c.selectsUser(q)
}

func (c *criteria) selectsObject(q *Query) bool {
	if c.objects == nil {
		return true
	}
	return q.Operation != operationDelete && c.objects.Matches(q.ObjectLabels) ||
		q.Operation != operationCreate && c.objects.Matches(q.OldObjectLabels)
}

const (
	operationCreate = "CREATE"
	operationDelete = "DELETE"
)

func (c *criteria) selectsTemplate(q *Query) bool {
	if len(c.templates) == 0 || q.Kind != rego.KindVirtualMachine {
		return true
	}
	t := q.Template
	if t == nil {
		return false
	}
	for i := range c.templates {
		want := &c.templates[i]
		if (want.Namespace == "" || want.Namespace == t.Namespace) &&
			(want.Name == "" || want.Name == t.Name) &&
			(want.Selector == nil || want.Selector.Matches(t.Labels)) {
			return true
		}
	}
	return false
}

func (c *criteria) selectsUser(q *Query) bool {
	if !q.HasUser {
		return true
	}
	return (c.include == nil || c.include.contain(&q.User)) &&
		(c.exclude == nil || !c.exclude.contain(&q.User))
}

// subjects are users, groups and service accounts, by their authenticated names.
type subjects struct {
	users, groups map[string]bool
}

func newSubjects(listed []Subject) *subjects {
	if len(listed) == 0 {
		return nil
	}
	s := &subjects{users: map[string]bool{}, groups: map[string]bool{}}
	for _, subject := range listed {
		switch subject.Kind {
		case v1alpha1.SubjectKindUser:
			s.users[subject.Name] = true
		case v1alpha1.SubjectKindGroup:
			s.groups[subject.Name] = true
		case v1alpha1.SubjectKindServiceAccount:
			s.users["system:serviceaccount:"+subject.Namespace+":"+subject.Name] = true
		}
	}
	return s
}

func (s *subjects) contain(user *rego.UserInfo) bool {
	if s.users[user.Username] {
		return true
	}
	for _, group := range user.Groups {
		if s.groups[group] {
			return true
		}
	}
	return false
}
