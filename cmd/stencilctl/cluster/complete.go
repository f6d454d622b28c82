package cluster

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// completionTime bounds the time of one completion.
	completionTime = 3 * time.Second
	// completions bounds the number of objects read; more are not useful.
	completions = 500
)

// CompleteNames completes an argument that is the name of an object in the namespace of the
// flags, or in another one as NAMESPACE/NAME. A second argument is completed only if many are
// allowed.
func (f *Flags) CompleteNames(resource schema.GroupVersionResource, many bool) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(arguments) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if namespace, name, found := strings.Cut(begun, "/"); found {
			return prefixed(namespace+"/", f.names(command.Context(), resource, namespace, name)), cobra.ShellCompDirectiveNoFileComp
		}
		return f.names(command.Context(), resource, "", begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteReferences completes a flag with a value NAMESPACE/NAME.
func (f *Flags) CompleteReferences(resource schema.GroupVersionResource) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if namespace, name, found := strings.Cut(begun, "/"); found {
			return prefixed(namespace+"/", f.names(command.Context(), resource, namespace, name)), cobra.ShellCompDirectiveNoFileComp
		}
		offered := f.names(command.Context(), namespaces, "", begun)
		for i := range offered {
			offered[i] += "/"
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// CompleteNamespaces completes the given namespace flags of a command and the flag --namespace,
// if the command has them.
func (f *Flags) CompleteNamespaces(command *cobra.Command, flags ...string) {
	for _, flag := range append(flags, "namespace") {
		if command.Flags().Lookup(flag) == nil {
			continue
		}
		// It fails only for a flag that does not exist, or that already has a completion.
		_ = command.RegisterFlagCompletionFunc(flag, func(command *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return f.names(command.Context(), namespaces, "", begun), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// names lists the objects with a name prefix. On any error it returns no names: an error would
// be written into the user's command line.
func (f *Flags) names(ctx context.Context, resource schema.GroupVersionResource, namespace, begun string) []string {
	client, err := f.Client(io.Discard)
	if err != nil {
		return nil
	}
	switch {
	case resource == namespaces:
		namespace = ""
	case namespace == "":
		namespace = client.Namespace
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	raw := client.rest.Get().AbsPath(resourcePath(resource, namespace, "")).Param("limit", strconv.Itoa(completions)).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").MaxRetries(0).Do(ctx)
	var list metav1.PartialObjectMetadataList
	if raw.Error() != nil {
		return nil
	}
	if body, err := raw.Raw(); err != nil || json.Unmarshal(body, &list) != nil {
		return nil
	}
	var found []string
	for i := range list.Items {
		if name := list.Items[i].Name; strings.HasPrefix(name, begun) {
			found = append(found, name)
		}
	}
	return found
}

func prefixed(prefix string, names []string) []string {
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names
}
