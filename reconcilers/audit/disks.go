package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
	"github.com/vmstencil/stencil/internal/excerpt"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// diskCheck finds VMs with disks that KubeVirt did not create for them. It caches the claims of one namespace, because the VMs of a
// namespace are consecutive.
type diskCheck struct {
	lister    pager
	retries   wait.Backoff
	namespace string
	claims    map[string]map[string]string
}

// apply sets the cause of VMs that satisfy an approval but have a disk that KubeVirt did not create for them, unless the approvals allow it.
func (c *diskCheck) apply(ctx context.Context, page []found) error {
	for i := range page {
		one := &page[i]
		if len(one.evaluation.satisfied) == 0 || len(one.disks) == 0 || !approval.DecidesOnDisks(one.approvals) {
			continue
		}
		if c.namespace != one.subject.namespace {
			if err := c.list(ctx, one.subject.namespace); err != nil {
				return err
			}
		}
		if why := foreignDisk(*one, c.claims); why != nil {
			one.evaluation = evaluation{cause: why}
		}
	}
	return nil
}

func (c *diskCheck) list(ctx context.Context, namespace string) error {
	claims := map[string]map[string]string{}
	err := readAll(ctx, c.lister, c.retries, namespace, func(object map[string]any) {
		labels := map[string]string{}
		for key, value := range machine.MapAt(object, "metadata", "labels") {
			labels[key], _ = value.(string)
		}
		claims[machine.StringAt(machine.MapAt(object, "metadata"), "name")] = labels
	})
	if err != nil {
		return err
	}
	c.namespace, c.claims = namespace, claims
	return nil
}

// foreignDisk returns the cause if disks of a VM are not approved, nil otherwise. A disk that does not exist yet is approved.
func foreignDisk(one found, claims map[string]map[string]string) *cause {
	problems := map[string]string{}
	var by string
	for _, name := range one.disks {
		labels, exists := claims[name]
		if !exists || disks.Own(labels, one.subject.uid) {
			continue
		}
		if denying := approval.DenyingDisk(one.approvals, labels); len(denying) > 0 {
			problems[name] = fmt.Sprintf("claim %s was not created for this VM: %s", name, disks.Problem(labels))
			if by == "" {
				by = denying[0].Name()
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		texts = append(texts, problems[name])
	}
	return newCause(ruleExistingDisk, by, "%s", excerpt.List(texts, maximumPaths, "claims"))
}
