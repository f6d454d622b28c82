package goldenimage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/internal/excerpt"
	"github.com/vmstencil/stencil/policies/sample"
	"github.com/vmstencil/stencil/reconcilers/internal/dryrun"
)

// maximumReason is the maximum length of the reason of a test that failed in bytes: the status has text around it.
const maximumReason = 800

// Templates returns templates; templatecache.Cache implements it.
type Templates interface {
	Get(namespace, name string) *templatecache.Template
	Listen(listener templatecache.Listener)
}

// tests tests images: it creates the VirtualMachine of a template with disks from the image, in a dry run.
type tests struct {
	templates Templates
	// client is nil if dry runs are disabled.
	client dynamic.Interface

	mutex   sync.Mutex
	results map[types.NamespacedName]map[goldenimage.Test]tested
}

// tested is the result of a test that was not accepted.
type tested struct {
	goldenimage.TestResult
	subject
	at time.Time
}

// subject is what a result depends on: the content of the template and of the GoldenImage.
type subject struct {
	template             types.UID
	generation, ofImages int64
}

// run returns the results of tests. One that failed is not repeated before its time, unless its template or the GoldenImage has changed.
func (t *tests) run(ctx context.Context, image *v1alpha1.GoldenImage, history []v1alpha1.ImportedImage, wanted []goldenimage.Test) map[goldenimage.Test]goldenimage.TestResult {
	name := types.NamespacedName{Namespace: image.Namespace, Name: image.Name}
	t.mutex.Lock()
	before := t.results[name]
	t.mutex.Unlock()
	results, stored := map[goldenimage.Test]goldenimage.TestResult{}, map[goldenimage.Test]tested{}
	for _, one := range wanted {
		now := tested{at: time.Now(), subject: subject{ofImages: image.Generation}}
		template := t.templates.Get(image.Namespace, one.Template)
		if template != nil {
			now.template, now.generation = template.UID, template.Generation
		}
		if last, is := before[one]; is && last.subject == now.subject && now.at.Sub(last.at) < goldenimage.TestInterval-time.Second {
			now = last
		} else {
			now.TestResult = t.try(ctx, image, history, one, template)
		}
		results[one] = now.TestResult
		if !now.Accepted {
			stored[one] = now
		}
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(stored) == 0 {
		delete(t.results, name)
	} else {
		t.results[name] = stored
	}
	return results
}

func (t *tests) try(ctx context.Context, image *v1alpha1.GoldenImage, history []v1alpha1.ImportedImage, test goldenimage.Test, template *templatecache.Template) goldenimage.TestResult {
	of := fmt.Sprintf("VirtualMachineTemplate %s/%s", image.Namespace, test.Template)
	failed := func(reason string) goldenimage.TestResult {
		return goldenimage.TestResult{Reason: excerpt.Of(reason, maximumReason)}
	}
	switch {
	case t.client == nil:
		return failed("dry runs are disabled: set the chart's value readiness.dryRun")
	case template == nil:
		return failed(of + " does not exist")
	}
	vm, problem := sample.Plain(template)
	if problem != nil {
		return failed(of + ": " + problem.Message)
	}
	for _, imported := range history {
		if imported.Digest == test.Digest && imported.Architecture == test.Architecture && !goldenimage.From(image, vm.Object, imported) {
			return failed(of + " has no disk from a DataSource of this GoldenImage")
		}
	}
	ctx, cancel := context.WithTimeout(ctx, dryrun.Timeout)
	defer cancel()
	result, text := dryrun.Evaluate(dryrun.Create(ctx, t.client, dryrun.VM(vm.Object), fieldManager), vm.Secrets)
	switch result {
	case dryrun.Accepted:
		return goldenimage.TestResult{Accepted: true}
	case dryrun.Denied:
		return failed(fmt.Sprintf("the VirtualMachine of %s is denied: %s", of, text))
	default:
		return failed("the dry run could not be made: " + text)
	}
}

// listen calls a function for each image whose test failed and whose template has changed since. The function does not block.
func (t *tests) listen(changed func(image types.NamespacedName)) {
	t.templates.Listen(func(name types.NamespacedName, template *templatecache.Template) {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		for image, results := range t.results {
			for test, result := range results {
				same := template != nil && result.template == template.UID && result.generation == template.Generation
				if image.Namespace == name.Namespace && test.Template == name.Name && !same {
					changed(image)
				}
			}
		}
	})
}

// forget removes the results of an image.
func (t *tests) forget(name types.NamespacedName) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.results, name)
}
