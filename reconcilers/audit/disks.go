package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/approval"
	"github.com/vmstencil/stencil/internal/disks"
)

// claimLister lists claims.
type claimLister interface {
	// claims returns the labels of the claims of a namespace, by name.
	claims(ctx context.Context, namespace string) (map[string]map[string]string, error)
}

// apiClaims is a claimLister that reads metadata from the API server.
type apiClaims struct{ client metadata.Interface }

func newAPIClaims(config *rest.Config) (*apiClaims, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of PersistentVolumeClaims: %w", err)
	}
	return &apiClaims{client}, nil
}

func (c *apiClaims) claims(ctx context.Context, namespace string) (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}).Namespace(namespace).List(ctx, options)
		switch {
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			options.Continue = continuation(err)
			continue
		case err != nil:
			return nil, fmt.Errorf("listing PersistentVolumeClaims of namespace %s: %w", namespace, err)
		}
		for i := range page.Items {
			found[page.Items[i].Name] = page.Items[i].Labels
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return found, nil
		}
	}
}

// diskCheck finds VMs with disks that KubeVirt did not create for them. It remembers the claims of one namespace: the VMs of one follow
// each other.
type diskCheck struct {
	lister    claimLister
	namespace string
	claims    map[string]map[string]string
}

// apply replaces the judgement of the VMs of a page that satisfy an approval and have another VM's disks, or one that nobody created
// for them.
func (c *diskCheck) apply(ctx context.Context, page []found) error {
	for i := range page {
		one := &page[i]
		if len(one.judgement.satisfied) == 0 || len(one.disks) == 0 || !approval.DecidesOnDisks(one.covering) {
			continue
		}
		if c.namespace != one.subject.namespace {
			claims, err := c.lister.claims(ctx, one.subject.namespace)
			if err != nil {
				return err
			}
			c.namespace, c.claims = one.subject.namespace, claims
		}
		if why := foreignDisk(*one, c.claims); why != nil {
			one.judgement = judgement{cause: why}
		}
	}
	return nil
}

// foreignDisk returns the cause for which disks of a VM are not approved, nil when they are. A disk that does not exist yet is.
func foreignDisk(one found, claims map[string]map[string]string) *cause {
	problems := map[string]string{}
	var by string
	for _, name := range one.disks {
		labels, exists := claims[name]
		if !exists || disks.Own(labels, one.subject.uid) {
			continue
		}
		if denying := approval.DenyingDisk(one.covering, labels); len(denying) > 0 {
			problems[name] = fmt.Sprintf("claim %s was not created for this machine: %s", name, disks.Problem(labels))
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
	return newCause(ruleExistingDisk, by, "%s", enumerate(texts, "claims"))
}
