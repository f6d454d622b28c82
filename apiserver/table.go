package apiserver

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
)

// asTable reports whether a client prefers a Table of meta.k8s.io/v1, as kubectl get does.
func asTable(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		if _, parameters, err := mime.ParseMediaType(part); err == nil {
			return parameters["as"] == "Table" && parameters["g"] == metav1.GroupName && parameters["v"] == "v1"
		}
	}
	return false
}

// table returns the templates as a table. include is what its rows have of their objects.
func (a *availability) table(include string) (reply, error) {
	table := &metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{
			{Name: "Name", Type: "string", Format: "name", Description: "Namespace and name of the template."},
			{Name: "Title", Type: "string", Description: "Name for users."},
			{Name: "Ready", Type: "string", Description: "Whether VirtualMachines can be created from the template now."},
			{Name: "Allowed", Type: "boolean", Description: "Whether an approval of the namespace allows it, or none is needed."},
			{Name: "Approvals", Type: "string", Description: "The approvals that allow it."},
			{Name: "Parameters", Type: "string", Description: "The parameters that may be given, with a star behind those that must be given.", Priority: 1},
			{Name: "Reason", Type: "string", Description: "Why it is not ready or not allowed.", Priority: 1},
		},
		Rows:     []metav1.TableRow{},
		ListMeta: metav1.ListMeta{Continue: a.next},
	}
	table.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	for _, t := range a.templates {
		one := a.describe(t)
		item := &one
		item.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("AvailableTemplate"))
		row := metav1.TableRow{Cells: []any{
			item.Name, item.DisplayName, string(item.Ready.Status), item.Allowed, approvalsCell(item), strings.Join(item.SettableParameters(), ","), reasonCell(item),
		}}
		switch metav1.IncludeObjectPolicy(include) {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			if err := addSchema(item); err != nil {
				return reply{}, err
			}
			row.Object = runtime.RawExtension{Object: item}
		case "", metav1.IncludeMetadata:
			partial := &metav1.PartialObjectMetadata{ObjectMeta: item.ObjectMeta}
			partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
			row.Object = runtime.RawExtension{Object: partial}
		default:
			return reply{}, apierrors.NewBadRequest(fmt.Sprintf("includeObject must be None, Metadata or Object, not %q", include))
		}
		table.Rows = append(table.Rows, row)
	}
	return reply{body: table, code: http.StatusOK}, nil
}

func approvalsCell(item *v1beta1.AvailableTemplate) string {
	var names []string
	for _, variant := range item.Variants {
		names = append(names, variant.Approvals...)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func reasonCell(item *v1beta1.AvailableTemplate) string {
	reasons := item.Reasons
	if item.Ready.Status != metav1.ConditionTrue {
		reasons = append(slices.Clone(reasons), item.Ready.Message)
	}
	return strings.Join(reasons, "; ")
}
