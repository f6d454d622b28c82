package input

import (
	"cmp"
	"time"

	"github.com/vmstencil/stencil/rego"
)

// input is `input` as JSON.
type input struct {
	Request      requestJSON       `json:"request"`
	Object       map[string]any    `json:"object"`
	OldObject    map[string]any    `json:"oldObject"`
	Namespace    rego.Namespace    `json:"namespace"`
	Template     *rego.Template    `json:"template"`
	Parameters   map[string]string `json:"parameters"`
	Instancetype map[string]any    `json:"instancetype"`
	Preference   map[string]any    `json:"preference"`
	Objects      []map[string]any  `json:"objects"`
}

type requestJSON struct {
	Operation   string        `json:"operation"`
	Kind        string        `json:"kind"`
	RequestKind string        `json:"requestKind"`
	Namespace   string        `json:"namespace"`
	Name        string        `json:"name"`
	UserInfo    rego.UserInfo `json:"userInfo"`
	DryRun      bool          `json:"dryRun"`
	// Time has whole seconds, as in the input of policies.
	Time *time.Time `json:"time"`
}

func inputOf(d rego.Document) input {
	in := input{
		Request: requestJSON{
			Operation: d.Request.Operation, Kind: d.Request.Kind, RequestKind: cmp.Or(d.Request.RequestKind, d.Request.Kind), Namespace: d.Request.Namespace, Name: d.Request.Name,
			UserInfo: d.Request.UserInfo, DryRun: d.Request.DryRun,
		},
		Object:       withoutManagedFields(d.Object),
		OldObject:    withoutManagedFields(d.OldObject),
		Namespace:    rego.Namespace{Name: d.Namespace.Name, Labels: texts(d.Namespace.Labels), Annotations: texts(d.Namespace.Annotations)},
		Parameters:   texts(d.Parameters),
		Instancetype: d.Instancetype,
		Preference:   d.Preference,
		Objects:      append([]map[string]any{}, d.Objects...),
	}
	if !d.Request.Time.IsZero() {
		seconds := d.Request.Time.UTC().Truncate(time.Second)
		in.Request.Time = &seconds
	}
	if d.Template != nil {
		t := rego.Template{
			Namespace: d.Template.Namespace, Name: d.Template.Name,
			Labels: texts(d.Template.Labels), Annotations: texts(d.Template.Annotations), Parameters: []rego.TemplateParameter{},
		}
		for _, p := range d.Template.Parameters {
			if p.Type == "" {
				p.Type = "string"
			}
			t.Parameters = append(t.Parameters, p)
		}
		in.Template = &t
	}
	return in
}

func (in input) document() rego.Document {
	d := rego.Document{
		Request: rego.Request{
			Operation: in.Request.Operation, Kind: in.Request.Kind, RequestKind: in.Request.RequestKind, Namespace: in.Request.Namespace, Name: in.Request.Name,
			UserInfo: in.Request.UserInfo, DryRun: in.Request.DryRun,
		},
		Object:       in.Object,
		OldObject:    in.OldObject,
		Namespace:    in.Namespace,
		Template:     in.Template,
		Parameters:   in.Parameters,
		Instancetype: in.Instancetype,
		Preference:   in.Preference,
		Objects:      in.Objects,
	}
	if in.Request.Time != nil {
		d.Request.Time = *in.Request.Time
	}
	return d
}

// texts returns an empty map for nil, as in the input of policies.
func texts(given map[string]string) map[string]string {
	if given == nil {
		return map[string]string{}
	}
	return given
}

// withoutManagedFields returns the object without metadata.managedFields. It copies
// only the maps that it changes.
func withoutManagedFields(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if _, found := metadata["managedFields"]; !found {
		return object
	}
	out := make(map[string]any, len(object))
	for key, value := range object {
		out[key] = value
	}
	result := make(map[string]any, len(metadata))
	for key, value := range metadata {
		if key != "managedFields" {
			result[key] = value
		}
	}
	out["metadata"] = result
	return out
}
