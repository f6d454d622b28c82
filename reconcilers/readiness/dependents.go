package readiness

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/vmstencil/stencil/reconcilers/readiness/sources"
)

// Dependents are the templates that depend on DataSources. All methods are safe for concurrent use.
type Dependents struct {
	index    *index
	complete func() bool
}

// Complete reports whether all templates were read.
func (d *Dependents) Complete() bool { return d.complete() }

// Of returns the templates that depend on a DataSource, also by another one that stands for it.
func (d *Dependents) Of(dataSource types.NamespacedName) []types.NamespacedName {
	return d.index.of(sources.Key{Kind: sources.DataSource, Namespace: dataSource.Namespace, Name: dataSource.Name})
}

// Listen calls a function for each DataSource whose templates change from now on. It must return quickly, and must not call Dependents.
func (d *Dependents) Listen(changed func(dataSource types.NamespacedName)) {
	d.index.mutex.Lock()
	defer d.index.mutex.Unlock()
	d.index.changed = func(key sources.Key) {
		if key.Kind == sources.DataSource {
			changed(types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
		}
	}
}
