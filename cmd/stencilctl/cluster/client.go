package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
)

// Client reads and writes objects of any kind as decoded JSON, with numbers as json.Number, as in
// the webhooks.
type Client struct {
	rest rest.Interface
	// Namespace is the requested namespace, empty for all.
	Namespace string
	// requested is the namespace that the user has requested. A command may look into others, which need not exist.
	requested string
}

// PageSize is how many objects of a list are requested at a time.
const PageSize = 250

// ErrNotServed is the error of List for a resource that the cluster does not serve.
var ErrNotServed = errors.New("the cluster does not serve")

// List visits all objects of a resource in the client's namespace. It fails if there are none because the user has requested a namespace that does not exist.
func (c *Client) List(ctx context.Context, resource schema.GroupVersionResource, selector string, visit func(object map[string]any) error) error {
	visited := 0
	for token := ""; ; {
		request := c.rest.Get().AbsPath(resourcePath(resource, c.Namespace, "")).Param("limit", strconv.Itoa(PageSize))
		if selector != "" {
			request.Param("labelSelector", selector)
		}
		if token != "" {
			request.Param("continue", token)
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []map[string]any `json:"items"`
		}
		err := fetch(ctx, request, &page)
		if next, expired := resume(err); expired {
			// The list has expired. It continues with the current objects: an object that has
			// changed in between may be visited twice or not at all.
			token = next
			continue
		}
		switch {
		case aboutNamespace(err):
			return cli.Cluster(fmt.Errorf("listing %s: %w", resource.GroupResource(), err))
		case apierrors.IsNotFound(err):
			return cli.Cluster(fmt.Errorf("%w %s", ErrNotServed, resource.GroupResource()))
		case err != nil:
			return cli.Cluster(fmt.Errorf("listing %s: %w", resource.GroupResource(), err))
		}
		for _, item := range page.Items {
			if err := visit(item); err != nil {
				return err
			}
		}
		visited += len(page.Items)
		if token = page.Metadata.Continue; token != "" {
			continue
		}
		if visited == 0 && c.Namespace != "" && c.Namespace == c.requested {
			return c.namespaceExists(ctx, c.Namespace)
		}
		return nil
	}
}

// resume returns the token with which an expired list continues.
func resume(err error) (token string, expired bool) {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return "", false
	}
	token = status.Status().Continue
	return token, token != ""
}

// Get returns an object, or nil when there is none. The error is the API server's.
func (c *Client) Get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (map[string]any, error) {
	var object map[string]any
	_, err := c.GetInto(ctx, resource, namespace, name, &object)
	return object, err
}

// GetInto decodes an object, and reports whether there is one. The error is the API server's.
func (c *Client) GetInto(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, into any) (found bool, err error) {
	err = fetch(ctx, c.rest.Get().AbsPath(resourcePath(resource, namespace, name)), into)
	if apierrors.IsNotFound(err) && !aboutNamespace(err) {
		return false, nil
	}
	return err == nil, err
}

// aboutNamespace reports whether an error is that the namespace of a request does not exist, rather than an object in it.
func aboutNamespace(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == namespaces.Resource
}

// namespaceExists returns an error if a namespace does not exist. The API server answers requests for objects in such a namespace as if it were empty. A
// user who may not get namespaces receives no error.
func (c *Client) namespaceExists(ctx context.Context, name string) error {
	var found struct{}
	if err := fetch(ctx, c.rest.Get().AbsPath(resourcePath(namespaces, "", name)), &found); apierrors.IsNotFound(err) {
		return cli.Cluster(fmt.Errorf("namespace %s does not exist", name))
	}
	return nil
}

// Absent returns the error for an object that does not exist in a namespace, which is otherwise if its namespace does not exist either.
func (c *Client) Absent(ctx context.Context, namespace string, otherwise error) error {
	if err := c.namespaceExists(ctx, namespace); err != nil {
		return fmt.Errorf("%w: %w", otherwise, err)
	}
	return cli.Cluster(otherwise)
}

// ResourceOf returns where objects of a kind are stored. It is empty if the cluster does not serve the kind.
func (c *Client) ResourceOf(ctx context.Context, apiVersion, kind string) (schema.GroupVersionResource, error) {
	at, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	var served metav1.APIResourceList
	err = fetch(ctx, c.rest.Get().AbsPath(path.Dir(resourcePath(at.WithResource("any"), "", ""))), &served)
	if err != nil && !apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, err
	}
	for _, each := range served.APIResources {
		if each.Kind == kind && each.Namespaced && !strings.Contains(each.Name, "/") {
			return at.WithResource(each.Name), nil
		}
	}
	return schema.GroupVersionResource{}, nil
}

// MaxConflicts is the number of attempts to change an object that other clients change concurrently, as controllers do.
const MaxConflicts = 5

// Written are options for writing an object.
type Written struct {
	// DryRun stores nothing.
	DryRun bool
}

// Create creates an object and returns what was stored. The error is the API server's.
func (c *Client) Create(ctx context.Context, resource schema.GroupVersionResource, namespace string, object any, how Written) (map[string]any, error) {
	return write(ctx, c.rest.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).AbsPath(resourcePath(resource, namespace, "")).Param("fieldValidation", metav1.FieldValidationStrict), object, how)
}

// Update replaces an object and returns what was stored. The error is the API server's.
func (c *Client) Update(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, object any, how Written) (map[string]any, error) {
	return write(ctx, c.rest.Put().SetHeader("Content-Type", runtime.ContentTypeJSON).AbsPath(resourcePath(resource, namespace, name)).Param("fieldValidation", metav1.FieldValidationStrict), object, how)
}

// Patch changes the given fields of an object by a JSON merge patch (RFC 7386), and returns what was stored. The error is the API server's.
func (c *Client) Patch(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, patch any, how Written) (map[string]any, error) {
	request := c.rest.Patch(types.MergePatchType).AbsPath(resourcePath(resource, namespace, name)).Param("fieldValidation", metav1.FieldValidationStrict)
	return write(ctx, request, patch, how)
}

// Delete deletes an object. The error is the API server's.
func (c *Client) Delete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, how Written) error {
	// The API server ignores the query of a DELETE that has a body, so what is not in the body would not hold: a dry run would delete.
	var options metav1.DeleteOptions
	if how.DryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := write(ctx, c.rest.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON).AbsPath(resourcePath(resource, namespace, name)), options, how)
	return err
}

// Call posts a body to a subresource of an object, and returns the response. The error is the API
// server's.
func (c *Client) Call(ctx context.Context, resource schema.GroupVersionResource, namespace, name, subresource string, body any, how Written) (map[string]any, error) {
	return write(ctx, c.rest.Post().SetHeader("Content-Type", runtime.ContentTypeJSON).AbsPath(path.Join(resourcePath(resource, namespace, name), subresource)), body, how)
}

func write(ctx context.Context, request *rest.Request, body any, how Written) (map[string]any, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	if how.DryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	var answer map[string]any
	err = fetch(ctx, request.Body(raw), &answer)
	return answer, err
}

func fetch(ctx context.Context, request *rest.Request, into any) error {
	result := request.SetHeader("Accept", "application/json").Do(ctx)
	// Error decodes the Status that the API server sent; the error of Raw does not.
	if err := result.Error(); err != nil {
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(into)
}

func resourcePath(resource schema.GroupVersionResource, namespace, name string) string {
	root := path.Join("/apis", resource.Group, resource.Version)
	if resource.Group == "" {
		root = path.Join("/api", resource.Version)
	}
	if namespace != "" {
		root = path.Join(root, "namespaces", namespace)
	}
	return path.Join(root, resource.Resource, name)
}

// Version returns the version of the API server, such as v1.34.1.
func (c *Client) Version(ctx context.Context) (string, error) {
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := fetch(ctx, c.rest.Get().AbsPath("/version"), &info); err != nil {
		return "", Failed("reading the version of the API server", err)
	}
	return info.GitVersion, nil
}

// Versions returns which versions of API groups the cluster serves, GROUP/VERSION, the preferred one of each group first.
func (c *Client) Versions(ctx context.Context, groups ...string) ([]string, error) {
	served := []string{}
	for _, group := range groups {
		var found metav1.APIGroup
		err := fetch(ctx, c.rest.Get().AbsPath("/apis/"+group), &found)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return served, Failed("reading the versions of "+group, err)
		}
		for _, version := range found.Versions {
			served = append(served, version.GroupVersion)
		}
	}
	return served, nil
}
