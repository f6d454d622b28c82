package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	openreports "github.com/openreports/reports-api/apis/openreports.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ReportResource are the Reports of the API group openreports.io.
var ReportResource = openreports.SchemeGroupVersion.WithResource("reports")

// reports writes Stencil's Reports. Its clients use no discovery, so a definition that is installed later is used at once.
type reports struct {
	objects  dynamic.Interface
	metadata metadata.Interface
}

func newReports(config *rest.Config) (*reports, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of Reports: %w", err)
	}
	metadata, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the metadata of Reports: %w", err)
	}
	return &reports{objects, metadata}, nil
}

// served reports whether the definition of Reports is installed.
func (r *reports) served(ctx context.Context) (bool, error) {
	_, err := r.metadata.Resource(ReportResource).List(ctx, metav1.ListOptions{LabelSelector: ReportSelector, Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// ReportSelector is the label selector of the Reports of the audit.
var ReportSelector = labels.Set{managedBy: managedByStencil}.String()

// storedReport identifies a Report that exists.
type storedReport struct{ version, digest string }

// reportWriter writes the Reports of one audit. It is safe for concurrent use.
type reportWriter struct {
	reports *reports
	now     time.Time

	mutex sync.Mutex
	// before are the Reports that existed and have not been processed yet, by namespace.
	before   map[string]storedReport
	current  int
	failures int
	// examples are the first of the failures.
	examples []error
}

// open lists the existing Reports. It returns nil if the definition of Reports is not installed.
func (r *reports) open(ctx context.Context, now time.Time) (*reportWriter, error) {
	l := &reportWriter{reports: r, now: now, before: map[string]storedReport{}}
	options := metav1.ListOptions{LabelSelector: ReportSelector, Limit: pageSize}
	for {
		page, err := r.metadata.Resource(ReportResource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing Reports: %w", err)
		}
		for _, one := range page.Items {
			if one.Name == reportName {
				l.before[one.Namespace] = storedReport{one.ResourceVersion, one.Annotations[digestAnnotation]}
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return l, nil
		}
	}
}

// openOnly is open for an audit of some namespaces, if the definition of Reports is installed.
func (r *reports) openOnly(ctx context.Context, now time.Time, namespaces []string) (*reportWriter, error) {
	l := &reportWriter{reports: r, now: now, before: map[string]storedReport{}}
	for _, namespace := range namespaces {
		one, err := r.metadata.Resource(ReportResource).Namespace(namespace).Get(ctx, reportName, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading the Report of namespace %s: %w", namespace, err)
		case one.Labels[managedBy] == managedByStencil:
			l.before[namespace] = storedReport{one.ResourceVersion, one.Annotations[digestAnnotation]}
		}
	}
	return l, nil
}

// write stores the Report of a namespace, unless its content is stored already.
func (l *reportWriter) write(ctx context.Context, n namespaceTally) {
	report, digest := reportOf(n, l.now)
	before, exists := l.take(n.namespace)
	if exists && before.digest == digest {
		l.note(nil)
		return
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(report)
	if err != nil {
		l.note(fmt.Errorf("encoding the Report of namespace %s: %w", n.namespace, err))
		return
	}
	object := &unstructured.Unstructured{Object: content}
	client := l.reports.objects.Resource(ReportResource).Namespace(n.namespace)
	if exists {
		object.SetResourceVersion(before.version)
		_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	} else {
		_, err = client.Create(ctx, object, metav1.CreateOptions{})
	}
	if err != nil {
		err = fmt.Errorf("writing the Report of namespace %s: %w", n.namespace, err)
	}
	l.note(err)
}

// take removes the Report of a namespace from those that have not been processed.
func (l *reportWriter) take(namespace string) (storedReport, bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before, exists := l.before[namespace]
	delete(l.before, namespace)
	return before, exists
}

func (l *reportWriter) note(err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err == nil {
		l.current++
		return
	}
	l.failures++
	if len(l.examples) < maximumPaths {
		l.examples = append(l.examples, err)
	}
}

// close deletes the Reports of namespaces that are no longer audited or contain no VM. It returns the number of current Reports, and how
// many could not be written or deleted.
func (l *reportWriter) close(ctx context.Context) (current, failures int, err error) {
	for namespace, before := range l.before {
		err := l.reports.objects.Resource(ReportResource).Namespace(namespace).Delete(ctx, reportName, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: &before.version},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			l.note(fmt.Errorf("deleting the Report of namespace %s: %w", namespace, err))
		}
	}
	return l.current, l.failures, errors.Join(l.examples...)
}
