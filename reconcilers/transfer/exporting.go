package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/internal/expansion"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
	"github.com/vmstencil/stencil/transfer"
)

const (
	// exportTimeout is how long an export may take until it can be downloaded.
	exportTimeout = 12 * time.Hour
	// serveInterval is how often a ready export is checked.
	serveInterval = 30 * time.Second
	// defaultTTL is how long a package can be downloaded.
	defaultTTL = 2 * time.Hour
	// result is the suffix of the volume with the package, and packageSlack is how much larger than its content it is: descriptor and tables.
	result       = "-package"
	packageSlack = 64 << 20
	// access is the suffix of the Secret with which users download or upload.
	access = "-access"
)

// Exports reconciles VirtualMachineTemplateExports.
type Exports struct {
	*runner
	expander *expansion.Client
}

// exporting is one export at one moment.
type exporting struct {
	*session
	expander *expansion.Client
	object   *v1beta1.VirtualMachineTemplateExport
}

// Reconcile implements reconcile.Reconciler.
func (r *Exports) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &v1beta1.VirtualMachineTemplateExport{}
	found, err := get(ctx, r.manager, request.Namespace, request.Name, object)
	acknowledged := false
	if found && (ended(object.Status.Phase) || object.Status.Phase == v1beta1.TransferReady) {
		acknowledged = acknowledgementChanged(object, object.Status.Conditions)
	}
	// The garbage collector deletes the objects of an export that is deleted.
	if err != nil || !found || object.DeletionTimestamp != nil || ended(object.Status.Phase) && !acknowledged {
		if err == nil {
			r.slots.leave(place{directionExport, request.NamespacedName})
		}
		return reconcile.Result{}, err
	}
	s, err := r.newSession(ctx, directionExport, "VirtualMachineTemplateExport", object, &object.Status.Phase, &object.Status.Conditions, func(o owner) []string { return o.serverNames(&r.settings) })
	if err != nil {
		return reconcile.Result{}, err
	}
	e := &exporting{s, r.expander, object}
	if acknowledged {
		return reconcile.Result{RequeueAfter: time.Second}, e.acknowledge(ctx, object.Spec.TemplateRef.Name)
	}
	return s.drive(ctx, e.step, e.clear)
}

// step does what is next, and returns when to look again.
func (e *exporting) step(ctx context.Context) (time.Duration, error) {
	status := &e.object.Status
	switch {
	case status.Phase == "":
		e.progressing(v1beta1.TransferPending, v1beta1.ReasonReconciling, "the export begins")
		return time.Millisecond, nil
	case status.Image != "":
		return 0, e.pushed(ctx)
	case status.Phase == v1beta1.TransferReady:
		return e.serve(ctx)
	case e.clock.Since(e.object.CreationTimestamp.Time) > exportTimeout:
		return 0, &permanentError{transfer.ReasonTimedOut, fmt.Sprintf("the export has not finished within %s", exportTimeout)}
	}
	seen, err := e.observe(ctx, e.owner, e.owner.called(""), e.who)
	if err != nil {
		return 0, err
	}
	if seen.missing {
		if queued, err := e.queued(ctx); queued || err != nil {
			return queueInterval, err
		}
		return pollInterval, e.begin(ctx)
	}
	return e.follow(ctx, seen)
}

// begin has the disks copied, and starts the mover when they are.
func (e *exporting) begin(ctx context.Context) error {
	prepared, err := e.prepare(ctx)
	if err != nil {
		return err
	}
	copies, waiting, err := e.copies(ctx, prepared.disks, e.authorized, slices.Concat(e.object.Spec.SourceNamespaces, []string{e.object.Namespace})...)
	if err != nil {
		return err
	}
	if waiting != "" {
		e.progressing(v1beta1.TransferPreparing, v1beta1.ReasonReconciling, waiting)
		return nil
	}
	return e.start(ctx, prepared, copies)
}

// prepare reads the template, and finds its disks.
func (e *exporting) prepare(ctx context.Context) (*exportable, error) {
	name := e.object.Spec.TemplateRef.Name
	template := &v1beta1.VirtualMachineTemplate{}
	found, err := get(ctx, e.cluster, e.object.Namespace, name, template)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &permanentError{ReasonTemplateUnusable, fmt.Sprintf("VirtualMachineTemplate %s/%s does not exist", e.object.Namespace, name)}
	}
	rendered, failed := sample.Plain(templatecache.Compile(template))
	if failed != nil {
		return nil, &permanentError{ReasonTemplateUnusable, fmt.Sprintf("VirtualMachineTemplate %s/%s cannot be exported: %s", e.object.Namespace, name, failed.Message)}
	}
	vm := rendered.Object
	if spec := machine.MapAt(vm, "spec"); spec["instancetype"] != nil || spec["preference"] != nil {
		vm, err = e.expander.Expand(ctx, e.object.Namespace, vm)
		if apierrors.IsNotFound(err) || lasting(err) {
			return nil, &permanentError{ReasonTemplateUnusable, fmt.Sprintf("expanding the instance type and the preference of VirtualMachineTemplate %s/%s: %v", e.object.Namespace, name, err)}
		}
		if err != nil {
			return nil, fmt.Errorf("expanding the instance type and the preference: %w", err)
		}
	}
	prepared, err := prepare(template, vm)
	if err != nil {
		return nil, &permanentError{ReasonTemplateUnusable, err.Error()}
	}
	if len(prepared.disks) > e.settings.MaxDisks {
		return nil, &permanentError{transfer.ReasonLimitExceeded, fmt.Sprintf("the template has %d disks, and at most %d are exported", len(prepared.disks), e.settings.MaxDisks)}
	}
	return prepared, nil
}

// start creates what the mover needs, and its Job.
func (e *exporting) start(ctx context.Context, of *exportable, copies []corev1.PersistentVolumeClaim) error {
	rendered, err := json.Marshal(of.vm)
	if err != nil {
		return err
	}
	template := of.template.DeepCopy()
	template.ObjectMeta = metav1.ObjectMeta{Name: template.Name, Namespace: template.Namespace, Annotations: template.Annotations, Labels: template.Labels}
	delete(template.Annotations, corev1.LastAppliedConfigAnnotation)
	encoded, err := json.Marshal(template)
	if err != nil {
		return err
	}
	task := &transfer.Task{Stage: transfer.Export, Limits: transfer.Limits{Disks: e.settings.MaxDisks, Bytes: e.settings.MaxBytes, Seconds: int64(exportTimeout.Seconds()), Ratio: maxRatio, StallSeconds: stallSeconds}, Package: e.contents(encoded, rendered)}
	j := job{template: versionOf(of.template), secret: e.owner.called(""), result: e.owner.called(result)}
	if target := e.target(); target != nil {
		task.Package.Target = target
		e.settings.restrict(task)
		j.credentials, j.authorities = nameOf(target.SecretRef), nameOf(target.CertificatesRef)
	}
	size := packageSlack + mountCopies(task, &j, of.disks, copies)
	chosen, err := e.storageOf(ctx, v1beta1.ImportStorage{StorageClassName: e.object.Spec.StorageClassName, VolumeMode: new(corev1.PersistentVolumeFilesystem)}, size, 0)
	if err != nil {
		return err
	}
	secret, digest, err := e.owner.secret(j.secret, task, e.who)
	if err != nil {
		return err
	}
	j.digest = digest
	if err := replace(ctx, e.cluster, secret); err != nil {
		return err
	}
	objects := []client.Object{e.owner.claim(j.result, chosen.size, chosen.class, chosen.modes, &chosen.mode), e.owner.networkPolicy(e.target() == nil, &e.settings)}
	if e.target() == nil {
		objects = append(objects, e.owner.offered(e.who, &e.settings)...)
	}
	for _, object := range append(objects, e.owner.job(e.owner.called(""), j, &e.settings)) {
		if err := ensure(ctx, e.cluster, object); err != nil {
			return err
		}
	}
	return nil
}

// contents returns the package of a template and the VirtualMachine that it renders, both as JSON.
func (e *exporting) contents(template, vm []byte) *transfer.Package {
	return &transfer.Package{File: e.file(), Format: e.format(), Compression: e.object.Spec.Compression, Template: template, VM: vm, DownloadToken: e.who.downloadToken}
}

// target returns the registry that the package is written to, and nil if it is downloaded.
func (e *exporting) target() *v1beta1.ExportTargetRegistry {
	if e.object.Spec.Target == nil {
		return nil
	}
	return &e.object.Spec.Target.Registry
}

func (e *exporting) format() v1beta1.ExportFormat {
	if e.object.Spec.Format == "" {
		return v1beta1.ExportOVA
	}
	return e.object.Spec.Format
}

// file returns the name of the package.
func (e *exporting) file() string {
	if e.format() == v1beta1.ExportOCI {
		return e.object.Spec.TemplateRef.Name + ".oci.tar"
	}
	return e.object.Spec.TemplateRef.Name + ".ova"
}

// follow writes how far the mover is.
func (e *exporting) follow(ctx context.Context, seen *observed) (again time.Duration, err error) {
	if err := failure(seen.state); err != nil {
		return 0, err
	}
	status := &e.object.Status
	doing := "writing the package"
	if target := e.target(); target != nil {
		doing += ", which is sent to " + target.Image
	}
	done := e.finished(ctx, seen, v1beta1.TransferTransferring, doing)
	if seen.state != nil {
		status.Disks, status.Percent = progressOf(seen.state.Disks)
	}
	if !done {
		return pollInterval, nil
	}
	status.Percent, status.Size, status.Digest, status.Warnings = 100, seen.state.Size, seen.state.Digest, seen.state.Warnings
	if e.sealed(seen.state.Seal); len(seen.state.Disks) > 0 {
		e.report(ctx, e.object.Spec.TemplateRef.Name, func(template *v1beta1.VirtualMachineTemplate) (int64, bool) {
			return template.Generation, versionOf(template) == seen.template
		})
	}
	if e.target() != nil {
		// Where the package is is stored before the mover, which reports it, is gone.
		status.Image, err = imageIn(e.target().Image, seen.state.Image)
		return time.Millisecond, err
	}
	if status.ExternalURL, err = e.externalURL(ctx, transfer.PackagePath+e.file()); err != nil {
		return 0, err
	}
	ttl := defaultTTL
	if e.object.Spec.TTL != nil {
		ttl = e.object.Spec.TTL.Duration
	}
	expires := metav1.NewTime(e.clock.Now().Add(ttl))
	status.ExpiresAt = &expires
	status.URL = "https://" + e.owner.serviceHost() + transfer.PackagePath + e.file()
	status.TokenSecretRef = &corev1.LocalObjectReference{Name: e.owner.called(access)}
	e.succeed(v1beta1.TransferReady, "the package can be downloaded until "+expires.UTC().Format(time.RFC3339), status.Size)
	return min(ttl, serveInterval), nil
}

// versionOf identifies a template, and the version of its spec.
func versionOf(template *v1beta1.VirtualMachineTemplate) string {
	return fmt.Sprintf("%s/%d", template.UID, template.Generation)
}

// imageIn returns the image that a mover reports. It fails if that is no digest in the repository of the target.
func imageIn(target, reported string) (string, error) {
	wanted, err := name.ParseReference(target, name.StrictValidation)
	if err != nil {
		return "", &permanentError{transfer.ReasonInvalidTask, "spec.target.registry.image: " + err.Error()}
	}
	got, err := name.NewDigest(reported)
	if err != nil || got.Context().Name() != wanted.Context().Name() {
		return "", &permanentError{transfer.ReasonMoverFailed, "the mover reports that it has written another image"}
	}
	return reported, nil
}

// pushed ends an export whose package the registry has.
func (e *exporting) pushed(ctx context.Context) error {
	if err := e.clear(ctx); err != nil {
		return err
	}
	e.succeed(v1beta1.TransferSucceeded, "the registry has "+e.object.Status.Image, e.object.Status.Size)
	return nil
}

// serve deletes the package when it has expired. The mover serves it until then; without one the export has failed.
func (e *exporting) serve(ctx context.Context) (time.Duration, error) {
	status := &e.object.Status
	if status.ExpiresAt == nil {
		// Someone else has written the status.
		return 0, &permanentError{ReasonExpired, "the status does not say when the package expires: create another export"}
	}
	if left := status.ExpiresAt.Sub(e.clock.Now()); left > 0 {
		seen, err := e.observe(ctx, e.owner, e.owner.called(""), e.who)
		var permanent *permanentError
		switch {
		case errors.As(err, &permanent):
			return 0, err
		case err == nil && seen.missing:
			return 0, &permanentError{transfer.ReasonMoverFailed, "the Job that served the package was deleted: create another export"}
		}
		// The package remains ready while the API server does not answer.
		return min(left, serveInterval), nil
	}
	if err := e.clear(ctx); err != nil {
		return 0, err
	}
	e.end(v1beta1.TransferExpired, metav1.ConditionFalse, ReasonExpired, "the package was deleted when it expired: create another export")
	return 0, nil
}

// clear deletes what the export has made.
func (e *exporting) clear(ctx context.Context) error {
	e.object.Status.URL, e.object.Status.ExternalURL, e.object.Status.TokenSecretRef = "", "", nil
	return e.discard(ctx)
}

// discard deletes what a transfer that reads disks has made.
func (s *session) discard(ctx context.Context) error {
	named := func(suffix string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: s.owner.namespace, Name: s.owner.called(suffix)}
	}
	failures := []error{
		s.deleteJob(ctx, s.owner, s.owner.called("")),
		remove(ctx, s.cluster, &corev1.Secret{ObjectMeta: named("")}), s.withdraw(ctx), remove(ctx, s.cluster, s.owner.networkPolicy(true, &s.settings)),
		remove(ctx, s.cluster, &corev1.PersistentVolumeClaim{ObjectMeta: named(result)}),
	}
	copies := &unstructured.UnstructuredList{}
	copies.SetGroupVersionKind(cdi.WithKind("DataVolumeList"))
	failures = append(failures, s.cluster.List(ctx, copies, client.InNamespace(s.owner.namespace), client.MatchingLabels(s.owner.labels())))
	for index := range copies.Items {
		failures = append(failures, remove(ctx, s.cluster, &copies.Items[index]))
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("deleting what was made to read the disks: %w", err)
	}
	return nil
}
