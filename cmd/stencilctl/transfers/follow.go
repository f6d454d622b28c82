package transfers

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/cmd/stencilctl/cluster"
	"github.com/vmstencil/stencil/cmd/stencilctl/files"
	"github.com/vmstencil/stencil/cmd/stencilctl/templates"
)

var (
	imports = cluster.TemplateImports
	exports = cluster.TemplateExports
)

// defaultTimeout of an import.
const defaultTimeout = 6 * time.Hour

// progress is what the statuses of imports and exports have in common.
type progress struct {
	phase      v1beta1.TransferPhase
	percent    int32
	conditions []metav1.Condition
	warnings   []string
	// due is true if the command itself is to do something now.
	due bool
}

// ended reports whether nothing happens any more without the user.
func (p *progress) ended() bool {
	switch p.phase {
	case v1beta1.TransferWaiting, v1beta1.TransferReady, v1beta1.TransferSucceeded, v1beta1.TransferFailed, v1beta1.TransferExpired:
		return true
	default:
		return false
	}
}

// watched is an import or an export.
type watched struct {
	streams         cli.Streams
	client          *cluster.Client
	resource        schema.GroupVersionResource
	namespace, name string
	reported        cluster.Reported
}

func newWatched(streams cli.Streams, client *cluster.Client, resource schema.GroupVersionResource, name string) *watched {
	return &watched{streams: streams, client: client, resource: resource, namespace: client.Namespace, name: name, reported: cluster.Reported{}}
}

// read reads the object.
func (w *watched) read(ctx context.Context, into any) error {
	object, err := w.get(ctx)
	if err != nil {
		return err
	}
	return w.decoded(templates.Decode(object, into))
}

func (w *watched) get(ctx context.Context) (map[string]any, error) {
	object, err := w.client.Get(ctx, w.resource, w.namespace, w.name)
	if err != nil {
		return nil, cluster.Failed("reading "+w.String(), err)
	}
	if object == nil {
		return nil, w.client.Absent(ctx, w.namespace, fmt.Errorf("%s does not exist", w))
	}
	return object, nil
}

func (w *watched) decoded(err error) error {
	if err != nil {
		return cli.Cluster(fmt.Errorf("reading %s: %w", w, err))
	}
	return nil
}

// String returns RESOURCE.GROUP/NAME.
func (w *watched) String() string { return w.kind() + "/" + w.name }

// placed returns what was created, with its namespace.
func (w *watched) placed() string { return cli.Placed(w.kind(), w.namespace, w.name) }

func (w *watched) kind() string {
	return strings.TrimSuffix(w.resource.Resource, "s") + "." + w.resource.Group
}

// follow prints the conditions as they change, and shows how many percent of the bytes were transferred, until nothing happens any more.
// read decodes the object, and returns its progress.
func (w *watched) follow(ctx context.Context, following *cli.Following, read func(object map[string]any) (progress, error)) error {
	meter := files.NewMeter(w.streams, "disks", 100)
	defer meter.End()
	var last progress
	err := following.Follow(ctx, w.streams, w.String(), func() (done bool, err error) {
		object, err := w.get(ctx)
		if err != nil {
			return false, err
		}
		if last, err = read(object); err != nil {
			return false, w.decoded(err)
		}
		meter.End()
		for _, condition := range last.conditions {
			w.reported.Print(w.streams.Err, condition)
		}
		if last.percent > 0 {
			meter.To(int64(last.percent))
		}
		return last.due || last.ended(), nil
	})
	if err != nil {
		return err
	}
	meter.End()
	for _, warning := range last.warnings {
		fmt.Fprintf(w.streams.Err, "warning: %s\n", warning)
	}
	if last.phase == v1beta1.TransferFailed || last.phase == v1beta1.TransferExpired {
		fmt.Fprintf(w.streams.Err, "%s has failed\n", w)
		return cli.ErrFindings
	}
	return nil
}

// create creates an import or an export, and decodes what was stored into it.
func create(ctx context.Context, client *cluster.Client, resource schema.GroupVersionResource, object any, dryRun bool) error {
	stored, err := client.Create(ctx, resource, client.Namespace, object, cluster.Written{DryRun: dryRun})
	if err != nil {
		return cluster.Failed("creating a "+strings.TrimSuffix(resource.Resource, "s"), err)
	}
	return cli.Cluster(templates.Decode(stored, object))
}
