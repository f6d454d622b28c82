package apiserver

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	labelselector "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	templatev1beta1 "github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/apiserver/jsonschema"
	"github.com/vmstencil/stencil/approval"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// Approvals are the source of the approvals that select a namespace.
type Approvals interface {
	Synced() bool
	ApprovalsFor(namespace string) []*approval.Approval
	// Namespace reports whether there is a namespace. It waits a moment for one that was just created.
	Namespace(ctx context.Context, name string) (labels, annotations map[string]string, found bool)
}

// Annotations of templates for users, as consoles read them.
const (
	annotationDisplayName = "openshift.io/display-name"
	annotationDescription = "description"
	annotationIcon        = "iconClass"
	annotationTags        = "tags"
)

const (
	// concurrentReviews bounds the permission checks of one request that run at a time.
	concurrentReviews = 16
	// maximumReviews bounds the permission checks of one request. Templates behind them are on the next page.
	maximumReviews = 100
)

// listAvailable returns the templates that the user may use for a VirtualMachine in a namespace.
func (h *handler) listAvailable(request *http.Request, path map[string]string, _ []byte) (reply, error) {
	selected, err := selectionOf(request)
	if err != nil {
		return reply{}, err
	}
	found, err := h.available(request.Context(), path[namespace], selected, request.URL.Query().Get("continue"))
	if err != nil {
		return reply{}, err
	}
	if asTable(request.Header.Get("Accept")) {
		return found.table(request.URL.Query().Get("includeObject"))
	}
	list, err := h.encode(found)
	return reply{body: list, code: http.StatusOK}, err
}

// getAvailable returns one of them.
func (h *handler) getAvailable(request *http.Request, path map[string]string, _ []byte) (reply, error) {
	found, err := h.available(request.Context(), path[namespace], func(t *templatecache.Template) bool { return availableName(t) == path[name] })
	if err != nil {
		return reply{}, err
	}
	if len(found.templates) == 0 {
		return reply{}, apierrors.NewNotFound(h.version.WithResource(availableTemplates).GroupResource(), path[name])
	}
	if asTable(request.Header.Get("Accept")) {
		return found.table(request.URL.Query().Get("includeObject"))
	}
	one := found.describe(found.templates[0])
	one.SetGroupVersionKind(h.version.WithKind("AvailableTemplate"))
	err = addSchema(&one)
	return reply{body: one, code: http.StatusOK}, err
}

// selectionOf returns which templates a request selects.
func selectionOf(request *http.Request) (func(*templatecache.Template) bool, error) {
	query := request.URL.Query()
	if watch := query.Get("watch"); watch != "" && watch != "false" && watch != "0" {
		return nil, apierrors.NewMethodNotSupported(v1beta1.GroupVersion.WithResource(availableTemplates).GroupResource(), "watch")
	}
	byLabels, err := labelselector.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, each := range byFields.Requirements() {
		if each.Field != "metadata.name" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field selector %s is not supported: only metadata.name is", each.Field))
		}
	}
	return func(t *templatecache.Template) bool {
		return byLabels.Matches(labelselector.Set(t.Labels())) && byFields.Matches(fields.Set{"metadata.name": availableName(t)})
	}, nil
}

// availableName returns the name of a template among those of all namespaces. No name of a namespace has a dot.
func availableName(t *templatecache.Template) string { return t.Namespace + "." + t.Name }

// availability is what a user may use in a namespace.
type availability struct {
	// target is the namespace.
	target    string
	user      authenticationv1.UserInfo
	approvals []*approval.Approval
	// templates are sorted by namespace and name.
	templates []*templatecache.Template
	// next is the token of the next page; empty if this is the last one.
	next string
}

// available returns which of the selected templates the user may use, behind the position of each token that is not empty.
func (h *handler) available(ctx context.Context, target string, selected func(*templatecache.Template) bool, after ...string) (*availability, error) {
	requester, found := genericrequest.UserFrom(ctx)
	if !found {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	if !h.options.Templates.Synced() || !h.options.Approvals.Synced() {
		return nil, apierrors.NewServiceUnavailable("the caches of templates and approvals are not synced; try again in a moment")
	}
	if _, _, exists := h.options.Approvals.Namespace(ctx, target); !exists {
		return nil, h.noNamespace(ctx, requester, target)
	}
	all := slices.DeleteFunc(h.options.Templates.List(), func(t *templatecache.Template) bool { return !selected(t) })
	slices.SortFunc(all, func(a, b *templatecache.Template) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for _, token := range after {
		var err error
		if all, err = behind(all, token); err != nil {
			return nil, err
		}
	}
	usable, left, err := h.usable(ctx, requester, all)
	if err != nil {
		return nil, err
	}
	page := &availability{target: target, user: userInfoOf(requester), approvals: h.options.Approvals.ApprovalsFor(target), templates: usable}
	if left > 0 {
		page.next = positionOf(all[len(all)-left-1])
	}
	return page, nil
}

// noNamespace is the error for a namespace that is not in the synced cache. Whether namespaces exist is for users who may get them.
func (h *handler) noNamespace(ctx context.Context, requester user.Info, target string) error {
	may, err := h.allowed(ctx, authorizer.AttributesRecord{User: requester, Verb: "get", APIVersion: "v1", Resource: "namespaces", Namespace: target, Name: target})
	if err != nil {
		return err
	}
	status := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, target)
	status.ErrStatus.Message = fmt.Sprintf("namespace %q does not exist", target)
	if !may {
		status.ErrStatus.Message += ", or you may not see it"
	}
	return status
}

// positionOf returns the token of the page that begins behind a template. It does not show the template, which the user may be unable to use.
func positionOf(t *templatecache.Template) string {
	sum := sha256.Sum256([]byte(string(t.UID) + "/" + t.Namespace + "/" + t.Name))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// behind returns the templates behind a position.
func behind(all []*templatecache.Template, token string) ([]*templatecache.Template, error) {
	if token == "" {
		return all, nil
	}
	for i, t := range all {
		if positionOf(t) == token {
			return all[i+1:], nil
		}
	}
	return nil, apierrors.NewResourceExpired("the list has changed since the page before: list again without continue")
}

// usable returns the templates that the user may use. It checks the permission once for each namespace of templates, and for each template of those
// namespaces of which the user may not use all. all are sorted; left is how many of them, at the end, are not checked because the request has made
// maximumReviews.
func (h *handler) usable(ctx context.Context, requester user.Info, all []*templatecache.Template) (found []*templatecache.Template, left int, err error) {
	groups := slices.Collect(chunks(all))
	groups = groups[:min(len(groups), maximumReviews/2)]
	whole, err := h.usableEach(ctx, requester, len(groups), func(i int) (namespace, name string) { return groups[i][0].Namespace, "" })
	if err != nil {
		return nil, 0, err
	}
	// The decision about a template is pending if its namespace is not enough.
	reviews, end := len(groups), 0
	var pending []*templatecache.Template
	for i, group := range groups {
		if whole[i] {
			end += len(group)
			continue
		}
		checked := min(len(group), maximumReviews-reviews)
		pending, reviews, end = append(pending, group[:checked]...), reviews+checked, end+checked
		if checked < len(group) {
			break
		}
	}
	single, err := h.usableEach(ctx, requester, len(pending), func(i int) (namespace, name string) { return pending[i].Namespace, pending[i].Name })
	if err != nil {
		return nil, 0, err
	}
	denied := map[*templatecache.Template]bool{}
	for i, t := range pending {
		denied[t] = !single[i]
	}
	return slices.DeleteFunc(slices.Clone(all[:end]), func(t *templatecache.Template) bool { return denied[t] }), len(all) - end, nil
}

// chunks returns the templates of each namespace.
func chunks(sorted []*templatecache.Template) iter.Seq[[]*templatecache.Template] {
	return func(yield func([]*templatecache.Template) bool) {
		for len(sorted) > 0 {
			end := slices.IndexFunc(sorted, func(t *templatecache.Template) bool { return t.Namespace != sorted[0].Namespace })
			if end < 0 {
				end = len(sorted)
			}
			if !yield(sorted[:end:end]) {
				return
			}
			sorted = sorted[end:]
		}
	}
}

// usableEach returns for each of n names whether the user may use that template; an empty name is for all templates of the namespace.
func (h *handler) usableEach(ctx context.Context, requester user.Info, n int, of func(i int) (namespace, name string)) ([]bool, error) {
	allowed := make([]bool, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentReviews)
	for i := range n {
		group.Go(func() (err error) {
			namespace, name := of(i)
			allowed[i], err = h.allowed(ctx, authorizer.AttributesRecord{
				User: requester, Verb: "use", Namespace: namespace, Name: name,
				APIGroup: templatev1beta1.GroupVersion.Group, APIVersion: templatev1beta1.GroupVersion.Version, Resource: templates,
			})
			return err
		})
	}
	return allowed, group.Wait()
}

// metadata returns the metadata of a template in the list.
func (a *availability) metadata(t *templatecache.Template) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: availableName(t), Namespace: a.target, Labels: t.Labels()}
}

// describe describes a template, without the schema of its parameters.
func (a *availability) describe(t *templatecache.Template) v1beta1.AvailableTemplate {
	one := v1beta1.AvailableTemplate{
		ObjectMeta:  a.metadata(t),
		TemplateRef: corev1.ObjectReference{Namespace: t.Namespace, Name: t.Name},
		DisplayName: t.Annotation(annotationDisplayName),
		Description: t.Annotation(annotationDescription),
		Icon:        t.Annotation(annotationIcon),
		Tags:        tagsOf(t.Annotation(annotationTags)),
		Ready:       readinessOf(t.Conditions()),
	}
	compiled, err := t.Compiled()
	if err != nil {
		one.Reasons = []string{"the template is invalid: its owner finds the reason in its condition " + templatev1beta1.ConditionValid}
		return one
	}
	question := approval.Question{
		User:      a.user,
		Template:  approval.Template{Namespace: t.Namespace, Name: t.Name, Labels: one.Labels, Digest: compiled.Digest()},
		Sensitive: compiled.Sensitive,
	}
	question.Objects = approval.ObjectsOf(question.Template, compiled)
	narrowed := approval.Narrow(a.approvals, question, compiled)
	one.Allowed, one.Enforcement, one.Variants = narrowed.Allowed, narrowed.Enforcement, narrowed.Variants
	for _, objection := range narrowed.Objections {
		one.Reasons = append(one.Reasons, objection.String())
	}
	return one
}

// addSchema adds the schema of the parameters.
func addSchema(one *v1beta1.AvailableTemplate) error {
	if !one.Allowed {
		return nil
	}
	described, err := json.Marshal(jsonschema.Of(one.DisplayName, one.Description, one.Variants))
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("encoding the schema of template %s: %w", one.Name, err))
	}
	one.Schema = &runtime.RawExtension{Raw: described}
	return nil
}

func tagsOf(annotation string) []string {
	var tags []string
	for tag := range strings.SplitSeq(annotation, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// readinessOf returns the condition of Stencil about the readiness of a template.
func readinessOf(conditions []metav1.Condition) v1beta1.Readiness {
	for _, each := range conditions {
		if each.Type == templatev1beta1.ConditionReady {
			return v1beta1.Readiness{Status: each.Status, Reason: each.Reason, Message: each.Message}
		}
	}
	return v1beta1.Readiness{Status: metav1.ConditionUnknown, Message: "its readiness is not reported yet"}
}
