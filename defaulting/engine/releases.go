package engine

import (
	"context"
	"reflect"
	"slices"
	"strings"

	kubevirtv1 "kubevirt.io/api/core/v1"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/domain"
)

// chosenReleases are the releases of KubeVirt that may start the VM of a request: the one that the cluster runs and, while it is
// updated, the one that it is updated to. virt-controller chooses the virt-launcher of a VM when it starts the VM, and has the
// version of either until the update is complete. So a value is written only if both agree.
type chosenReleases struct {
	// list is never empty. If unknown is set it is the nearest guess, which is enough for what does not depend on the release.
	list []domain.Release
	// unknown is the reason why neither machine type nor addresses are written.
	unknown string
	// machineType is the reason why the version of the machine type is not written.
	machineType string
}

// byDefault returns the release for a request without a version: that of the image, else the newest.
func (e *Engine) byDefault() domain.Release {
	if release, ok := domain.ReleaseOf(e.kubevirt); ok {
		return release
	}
	return domain.Releases[len(domain.Releases)-1]
}

// choose returns the releases that may start the VM of a request.
func (e *Engine) choose(cluster defaulting.Cluster) chosenReleases {
	var chosen chosenReleases
	for _, version := range []string{cluster.KubeVirt, cluster.Target} {
		if version == "" {
			continue
		}
		release, ok := domain.ReleaseOf(version)
		switch {
		case !ok:
			chosen.unknown = "the cluster runs KubeVirt " + version + ", and the defaulter reproduces " + reproduced()
		case !slices.Contains(chosen.list, release):
			chosen.list = append(chosen.list, release)
		}
		if e.kubevirt != "" && minor(e.kubevirt) != minor(version) {
			chosen.machineType = "the cluster runs KubeVirt " + version + ", and the defaulter has the libvirt and QEMU of " + e.kubevirt
		}
	}
	if len(chosen.list) == 0 {
		chosen.list = []domain.Release{e.byDefault()}
	}
	return chosen
}

// versions returns the versions of the releases, separated by commas.
func (c chosenReleases) versions() string {
	versions := make([]string, len(c.list))
	for i, release := range c.list {
		versions[i] = release.Version
	}
	return strings.Join(versions, ",")
}

// reproduced returns the minor versions that are reproduced.
func reproduced() string {
	var minors []string
	for _, release := range domain.Releases {
		if next := minor(release.Version); !slices.Contains(minors, next) {
			minors = append(minors, next)
		}
	}
	return strings.Join(minors, " and ")
}

// minor returns the version without its last part.
func minor(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// prepare applies the defaults of each release to a VirtualMachine.
func (a *answering) prepare(vm *kubevirtv1.VirtualMachine) []*domain.PreparedVM {
	all := make([]*domain.PreparedVM, len(a.chosen.list))
	for i, release := range a.chosen.list {
		all[i] = domain.Prepare(vm, domain.Inputs{
			Instancetype: a.request.Instancetype, Preference: a.request.Preference, Cluster: a.request.Cluster, Release: release,
		})
	}
	return all
}

// common returns the fields that all releases fill with the same value.
func common(all []*domain.PreparedVM) []domain.Set {
	sets := all[0].Sets
	for _, other := range all[1:] {
		var shared []domain.Set
		for _, set := range sets {
			if slices.ContainsFunc(other.Sets, func(s domain.Set) bool { return reflect.DeepEqual(s, set) }) {
				shared = append(shared, set)
			}
		}
		sets = shared
	}
	return sets
}

// agreed returns the layout of a VM. While KubeVirt is updated it is that of the release that the cluster runs, with a mark if
// the other one's is different. A VM that either rejects counts as rejected.
func (e *Engine) agreed(ctx context.Context, a *answering, all []*domain.PreparedVM) (*cachedLayout, error) {
	var first *cachedLayout
	for _, prepared := range all {
		found, err := e.layout(ctx, domain.NewShape(prepared, a.request.Cluster), &a.response.Cache)
		if err != nil {
			return nil, err
		}
		switch {
		case found.rejection != "":
			return found, nil
		case first == nil:
			first = found
		case !sameAddresses(first.layout, found.layout):
			return &cachedLayout{layout: first.layout, differs: true}, nil
		case found.drifts:
			first = found
		}
	}
	return first, nil
}
