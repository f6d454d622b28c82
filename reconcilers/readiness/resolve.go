package readiness

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// Reasons of Stencil's own states. Others are CDI's, or the phase of an object.
const (
	reasonNotRead           = "NotRead"
	reasonNotPermitted      = "NotPermitted"
	reasonInferred          = "Inferred"
	reasonParameterRequired = "ParameterRequired"
	reasonNotServed         = "NotServed"
	reasonNotKnown          = "NotKnown"
	reasonTerminating       = "Terminating"
	reasonNoSource          = "NoSource"
	reasonCrossNamespace    = "CrossNamespaceReference"
	reasonSelfReference     = "SelfReference"
	reasonMaxDepth          = "MaxReferenceDepthReached"
)

// lookup reads objects; sources.Watches implements it.
type lookup interface {
	Get(key sources.Key) (object sources.Object, found bool, unknown error)
}

// errNotPermitted is the same for objects that exist and for others.
var errNotPermitted = errors.New("it is in another namespace, and who last wrote the template may not get it, or is not recorded: write the template with that permission")

// resolver determines states, and stores the keys that it has read, each once.
type resolver struct {
	lookup
	seen []sources.Key
	// namespace of the template, and may reports whether its last writer may get an object of another one. foreign is set if that mattered, and
	// failed if there was no answer.
	namespace string
	may       func(sources.Key) (bool, error)
	foreign   bool
	// denied is set if the writer may not get one of them.
	denied bool
	failed error
	// images of the DataSources that have been read, each once.
	images []bootSource
}

func (r *resolver) get(key sources.Key) (sources.Object, bool, error) {
	// Also of objects that may not be reported: the owner of an image is shown how many templates use it.
	if !slices.Contains(r.seen, key) {
		r.seen = append(r.seen, key)
	}
	if key.Namespace != "" && key.Namespace != r.namespace {
		r.foreign = true
		may, err := r.may(key)
		if err != nil {
			r.failed = err
		}
		if !may {
			r.denied = true
			return sources.Object{}, false, errNotPermitted
		}
	}
	return r.Get(key)
}

// result is the state of an object.
type result struct {
	v1beta1.SourceStatus
	progress string
}

func is(state v1beta1.SourceState, reason, format string, arguments ...any) result {
	return result{SourceStatus: v1beta1.SourceStatus{State: state, Reason: reason, Message: fmt.Sprintf(format, arguments...)}}
}

var ready = result{SourceStatus: v1beta1.SourceStatus{State: v1beta1.SourceReady}}

// resolve returns the state of the object that a reference names.
func (r *resolver) resolve(from reference) result {
	if from.state.State != "" {
		return result{SourceStatus: from.state}
	}
	if strings.Contains(from.Namespace+from.Name, "${") {
		return is(v1beta1.SourceUnknown, reasonParameterRequired, "its name depends on a parameter that has no default")
	}
	switch from.Kind {
	case sources.DataSource:
		return r.dataSource(from.Key)
	case sources.Claim, sources.DataVolume:
		return r.claim(from.Key)
	default:
		return r.object(from.Key)
	}
}

// object returns the state of an object that does not refer to another.
func (r *resolver) object(key sources.Key) result {
	object, found, unknown := r.get(key)
	switch {
	case unknown != nil:
		return ignorance(unknown)
	case !found:
		return is(v1beta1.SourceNotFound, v1beta1.ReasonSourceNotFound, "%s does not exist", key)
	}
	return state(key, object)
}

func ignorance(unknown error) result {
	var notServed *sources.NotServedError
	var notWatched *sources.NotWatchedError
	switch {
	case errors.As(unknown, &notServed):
		return is(v1beta1.SourceUnknown, reasonNotServed, "%v", unknown)
	case errors.Is(unknown, errNotPermitted):
		return is(v1beta1.SourceUnknown, reasonNotPermitted, "%v", unknown)
	case errors.As(unknown, &notWatched):
		return is(v1beta1.SourceUnknown, reasonNotRead, "%v", unknown)
	}
	return is(v1beta1.SourceUnknown, reasonNotKnown, "%v", unknown)
}

func state(key sources.Key, object sources.Object) result {
	switch {
	case object.Deleting:
		return is(v1beta1.SourceNotReady, reasonTerminating, "%s is being deleted", key)
	case object.Ready:
		return ready
	case object.Importing:
		importing := is(v1beta1.SourceImporting, object.Reason, "%s is being filled", key)
		importing.progress = object.Progress
		return importing
	}
	return is(v1beta1.SourceNotReady, object.Reason, "%s cannot be used: %s", key, object.Message)
}

// claim returns the state of a claim, or of the claim of a DataVolume: both have the same name. While the DataVolume exists and has not
// succeeded, the content of the claim is not complete.
func (r *resolver) claim(key sources.Key) result {
	volumeKey, claimKey := key, key
	volumeKey.Kind, claimKey.Kind = sources.DataVolume, sources.Claim
	volume, there, _ := r.get(volumeKey)
	if there && (volume.Deleting || !volume.Ready) {
		return state(volumeKey, volume)
	}
	return r.object(claimKey)
}

// dataSource follows a DataSource as CDI does: to a claim or a snapshot, or to one other DataSource of its namespace that refers to one.
func (r *resolver) dataSource(key sources.Key) result {
	object, found, unknown := r.get(key)
	switch {
	case unknown != nil:
		return ignorance(unknown)
	case !found:
		return is(v1beta1.SourceNotFound, v1beta1.ReasonSourceNotFound, "%s does not exist", key)
	case object.Deleting:
		return is(v1beta1.SourceNotReady, reasonTerminating, "%s is being deleted", key)
	}
	to, image := object.To, object.Image
	if to.Kind == sources.DataSource {
		var problem result
		var behind sources.Image
		if to, behind, problem = r.second(key, to); problem.State != "" {
			return problem
		}
		if image == (sources.Image{GoldenImage: image.GoldenImage}) && behind != (sources.Image{}) {
			image = behind
		}
	}
	if image != (sources.Image{}) && !slices.Contains(r.images, bootSource{key, image}) {
		r.images = append(r.images, bootSource{key, image})
	}
	if to == (sources.Key{}) {
		return is(v1beta1.SourceNotReady, reasonNoSource, "%s names nothing that it stands for", key)
	}
	behind := r.resolve(reference{Key: to})
	switch {
	case object.ReadyReported && object.Ready && behind.Reason == reasonNotPermitted:
		// Who may get the DataSource reads the same in it.
		return ready
	case object.ReadyReported && !object.Ready && (behind.State == v1beta1.SourceReady || behind.State == v1beta1.SourceUnknown):
		return is(v1beta1.SourceNotReady, object.Reason, "CDI reports that %s is not ready: %s", key, object.Message)
	case behind.State != v1beta1.SourceReady:
		behind.Message = fmt.Sprintf("%s stands for %s: %s", key, to, behind.Message)
	}
	return behind
}

// second follows a DataSource that another one refers to.
func (r *resolver) second(first, key sources.Key) (to sources.Key, image sources.Image, problem result) {
	switch {
	case key.Namespace != first.Namespace:
		return to, image, is(v1beta1.SourceNotReady, reasonCrossNamespace, "%s names %s, and CDI follows DataSources within a namespace only", first, key)
	case key.Name == first.Name:
		return to, image, is(v1beta1.SourceNotReady, reasonSelfReference, "%s names itself", first)
	}
	object, found, unknown := r.get(key)
	switch {
	case unknown != nil:
		return to, image, ignorance(unknown)
	case !found:
		return to, image, is(v1beta1.SourceNotFound, v1beta1.ReasonSourceNotFound, "%s stands for %s, which does not exist", first, key)
	case object.Spec.Kind == sources.DataSource:
		return to, image, is(v1beta1.SourceNotReady, reasonMaxDepth, "%s names %s, which names another, and CDI follows one", first, key)
	}
	return object.Spec, object.Image, result{}
}

// survey returns the state of all dependencies of a VM.
func (r *resolver) survey(d dependencies) v1beta1.TemplateSources {
	var found v1beta1.TemplateSources
	for _, one := range d.volumes {
		got := r.resolve(one.reference)
		if one.relative {
			const relative = "VirtualMachines of other namespaces look for it in their own, because the sourceRef has no namespace"
			got.Message = strings.TrimPrefix(got.Message+"; "+relative, "; ")
		}
		found.Volumes = append(found.Volumes, v1beta1.TemplateVolume{
			Volume: one.name, Kind: string(one.Kind), Namespace: one.Namespace, Name: one.Name, Progress: got.progress, SourceStatus: got.SourceStatus,
		})
	}
	found.Instancetype, found.Preference = r.size(d.instancetypes), r.size(d.preferences)
	for _, one := range d.networks {
		found.Networks = append(found.Networks, v1beta1.TemplateNetwork{
			Network: one.name, Namespace: one.Namespace, Name: one.Name, SourceStatus: r.resolve(reference{Key: one.Key}).SourceStatus,
		})
	}
	return found
}

// size returns the instance type or preference in the worst state; a VM has one of them.
func (r *resolver) size(all []reference) (worst *v1beta1.TemplateReference) {
	for _, one := range all {
		got := r.resolve(one).SourceStatus
		if worst == nil || gravity(got) > gravity(worst.SourceStatus) {
			worst = &v1beta1.TemplateReference{Kind: string(one.Kind), Namespace: one.Namespace, Name: one.Name, SourceStatus: got}
		}
	}
	return worst
}

// gravity orders states, worse ones higher; 0 does not affect the template.
func gravity(status v1beta1.SourceStatus) int {
	for i, of := range grave {
		if one := (dependency{SourceStatus: status}); one.State == of.state && !one.unchecked() {
			return len(grave) - i
		}
	}
	return 0
}
