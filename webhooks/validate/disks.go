package validate

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/webhooks/internal/deny"
)

// concurrency is the number of disks that are read at a time.
const concurrency = 8

// Disks reads from the API server; a disks.APIServer implements it. The result is nil for an object that does not
// exist.
type Disks interface {
	DataVolume(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error)
	Claim(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error)
	VirtualMachine(ctx context.Context, namespace, name string) (map[string]any, error)
	Identity(ctx context.Context, source disks.Source) (uid, description string, err error)
}

// pinned returns the identities of the sources of disks, or nil if no approval that evaluates the user pins sources.
// It calls sourcesOf, and reads objects, only if an approval does.
func (h *Handler) pinned(ctx context.Context, approvals []*approval.Approval, q approval.Question, sourcesOf func() []disks.Source) ([]approval.DiskSource, error) {
	if h.disks == nil || approval.Exempt(approvals, q.User) || !approval.PinsSources(approvals, q.Template) {
		return nil, nil
	}
	sources := sourcesOf()
	found := make([]approval.DiskSource, len(sources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, source := range sources {
		found[i] = approval.DiskSource{Field: source.Field, Digest: source.Digest, Description: source.Problem}
		switch {
		case source.Digest != "":
			found[i].Description = "the image has digest " + source.Digest
		case i >= disks.Maximum:
			found[i].Description = fmt.Sprintf("only the first %d are looked up", disks.Maximum)
		case source.Kind != "":
			group.Go(func() (err error) {
				found[i].UID, found[i].Description, err = h.disks.Identity(ctx, source)
				return err
			})
		}
	}
	return found, group.Wait()
}

// existing is a DataVolume or claim with the name of a disk of a new VirtualMachine.
type existing struct {
	template disks.Template
	kind     string
	labels   map[string]string
}

// evaluateDisks adds to the decision of the approvals an objection for each disk of a new VirtualMachine that already
// exists. virt-controller would use such a disk, whatever its content. The function returns the decision unchanged,
// without reading objects, if the VirtualMachine is not approved otherwise or has no dataVolumeTemplates, or if no
// approval that denies or warns restricts existing disks.
func (h *Handler) evaluateDisks(ctx context.Context, request admission.Request, vm machine.Object, approvals []*approval.Approval, v approval.Decision) (approval.Decision, *admission.Response) {
	templates := disks.Templates(vm.Spec)
	if !v.Allowed || v.Exempt || len(templates) == 0 || !approval.DecidesOnDisks(approvals) {
		return v, nil
	}
	if len(templates) > disks.Maximum {
		return v, ptr.To(deny.Invalid(request.Name, field.ErrorList{field.TooMany(field.NewPath("spec", "dataVolumeTemplates"), len(templates), disks.Maximum)}))
	}
	found, err := h.existingDisks(ctx, request.Namespace, templates)
	if err != nil {
		return v, ptr.To(deny.Unavailable(err.Error()))
	}
	objections := diskObjections(found, approval.NotExempting(approvals, request.UserInfo))
	if len(objections) == 0 {
		return v, nil
	}
	// The disks may belong to a VirtualMachine of this name. The API server then responds that it already exists.
	stored, err := h.disks.VirtualMachine(ctx, request.Namespace, vm.Name())
	switch {
	case err != nil:
		return v, ptr.To(deny.Unavailable(err.Error()))
	case stored != nil:
		return v, nil
	}
	v.Allowed, v.By, v.Objections = false, "", objections
	return v, nil
}

// existingDisks returns the disks that exist, except for those that are being deleted: virt-controller waits for the
// deletion, and an instance does not start with them.
func (h *Handler) existingDisks(ctx context.Context, namespace string, templates []disks.Template) ([]existing, error) {
	kinds := []struct {
		name string
		get  func(ctx context.Context, namespace, name string) (*metav1.ObjectMeta, error)
	}{{"DataVolume", h.disks.DataVolume}, {"PersistentVolumeClaim", h.disks.Claim}}
	found := make([]*existing, len(templates)*len(kinds))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for i, template := range templates {
		for j, kind := range kinds {
			group.Go(func() error {
				object, err := kind.get(ctx, namespace, template.Name)
				if err == nil && object != nil && object.DeletionTimestamp == nil {
					found[i*len(kinds)+j] = &existing{template: template, kind: kind.name, labels: object.Labels}
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []existing
	for _, one := range found {
		if one != nil {
			all = append(all, *one)
		}
	}
	return all, nil
}

// diskObjections returns the objections of approvals to disks that exist: at most one for each disk and approval.
func diskObjections(found []existing, approvals []*approval.Approval) []approval.Objection {
	var objections []approval.Objection
	objected := map[string]bool{}
	for _, one := range found {
		for _, a := range approval.DenyingDisk(approvals, one.labels) {
			if key := one.template.Field + " " + a.Name(); !objected[key] {
				objected[key] = true
				objections = append(objections, approval.Objection{
					Approval: a.Name(),
					Field:    one.template.Field,
					Message: fmt.Sprintf("%s %q exists already, and the VirtualMachine would start from it: delete it or choose another name, or ask a cluster admin to allow it with existingDisks",
						one.kind, one.template.Name),
				})
			}
		}
	}
	return objections
}
