package selfprotection

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// content is the compared part of an object. It excludes the status, the metadata other than the labels and annotations of the manifest,
// and the webhooks and caBundles that the manifest does not contain.
type content map[string]any

// contentOf returns the content of a stored object that has this manifest. The result must not be changed.
func contentOf(stored *unstructured.Unstructured, m manifest) content {
	c := content{}
	for key, value := range stored.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		case "webhooks":
			if _, mentioned := m.object.Object[key]; mentioned {
				c[key] = withoutForeignBundles(value, mentionedBundles(m))
			}
		default:
			c[key] = value
		}
	}
	c["labels"] = mentioned(stored.GetLabels(), m.object.GetLabels())
	c["annotations"] = mentioned(stored.GetAnnotations(), m.object.GetAnnotations())
	return c
}

func (c content) equal(other content) bool {
	return reflect.DeepEqual(map[string]any(c), map[string]any(other))
}

// mentioned returns the entries of stored that have a key in wanted.
func mentioned(stored, wanted map[string]string) map[string]any {
	left := map[string]any{}
	for key := range wanted {
		if value, found := stored[key]; found {
			left[key] = value
		}
	}
	return left
}

// webhooksOf returns the webhooks of a configuration by their names.
func webhooksOf(object *unstructured.Unstructured) map[string]map[string]any {
	list, _ := object.Object["webhooks"].([]any)
	webhooks := make(map[string]map[string]any, len(list))
	for _, item := range list {
		if webhook, ok := item.(map[string]any); ok {
			name, _ := webhook["name"].(string)
			webhooks[name] = webhook
		}
	}
	return webhooks
}

// caBundleOf returns the caBundle of a webhook, and whether there is one.
func caBundleOf(webhook map[string]any) (any, bool) {
	clientConfig, _ := webhook["clientConfig"].(map[string]any)
	caBundle, found := clientConfig["caBundle"]
	return caBundle, found
}

// mentionedBundles returns the names of the webhooks that have a caBundle in the manifest.
func mentionedBundles(m manifest) map[string]bool {
	names := map[string]bool{}
	for name, webhook := range webhooksOf(m.object) {
		if _, found := caBundleOf(webhook); found {
			names[name] = true
		}
	}
	return names
}

// withoutForeignBundles returns a list of webhooks with only the caBundles of those in keep.
func withoutForeignBundles(webhooks any, retained map[string]bool) any {
	list, ok := webhooks.([]any)
	if !ok {
		return webhooks
	}
	shorter := slices.Clone(list)
	for i, item := range list {
		webhook, _ := item.(map[string]any)
		if _, found := caBundleOf(webhook); !found {
			continue
		}
		if name, _ := webhook["name"].(string); retained[name] {
			continue
		}
		webhook = maps.Clone(webhook)
		clientConfig := maps.Clone(webhook["clientConfig"].(map[string]any))
		delete(clientConfig, "caBundle")
		webhook["clientConfig"] = clientConfig
		shorter[i] = webhook
	}
	return shorter
}

// replacement returns the object that replaces a stored one: the manifest, with the metadata, the webhooks and the caBundles of the stored
// object that the manifest does not contain. It is conditional on the stored object's resource version.
func replacement(stored *unstructured.Unstructured, m manifest) *unstructured.Unstructured {
	next := m.object.DeepCopy()
	next.SetUID(stored.GetUID())
	next.SetResourceVersion(stored.GetResourceVersion())
	next.SetFinalizers(stored.GetFinalizers())
	next.SetOwnerReferences(stored.GetOwnerReferences())
	next.SetLabels(overlaid(stored.GetLabels(), m.object.GetLabels()))
	next.SetAnnotations(overlaid(stored.GetAnnotations(), m.object.GetAnnotations()))

	if _, mentioned := next.Object["webhooks"]; !mentioned {
		if webhooks, found := stored.DeepCopy().Object["webhooks"]; found {
			next.Object["webhooks"] = webhooks
		}
		return next
	}
	before := webhooksOf(stored)
	for name, webhook := range webhooksOf(next) {
		if _, found := caBundleOf(webhook); found {
			continue
		}
		clientConfig, ok := webhook["clientConfig"].(map[string]any)
		if !ok {
			continue
		}
		if caBundle, found := caBundleOf(before[name]); found {
			clientConfig["caBundle"] = caBundle
		} else if m.authority != nil {
			clientConfig["caBundle"] = m.authority
		}
	}
	return next
}

func overlaid(lower, upper map[string]string) map[string]string {
	if len(lower)+len(upper) == 0 {
		return nil
	}
	both := make(map[string]string, len(lower)+len(upper))
	maps.Copy(both, lower)
	maps.Copy(both, upper)
	return both
}

// differences returns the paths at which two contents differ, in order.
func (c content) differences(other content) []string {
	var paths []string
	compare("", map[string]any(c), map[string]any(other), func(path string) { paths = append(paths, path) })
	slices.Sort(paths)
	return paths
}

func compare(path string, a, b any, report func(path string)) {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok {
			report(path)
			return
		}
		for key := range a {
			if _, found := b[key]; !found {
				report(join(path, key))
				continue
			}
			compare(join(path, key), a[key], b[key], report)
		}
		for key := range b {
			if _, found := a[key]; !found {
				report(join(path, key))
			}
		}
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			report(path)
			return
		}
		for i := range a {
			compare(fmt.Sprintf("%s[%d]", path, i), a[i], b[i], report)
		}
	default:
		if !reflect.DeepEqual(a, b) {
			report(path)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// defaults are the API server's defaults for fields of policies and bindings.
var defaults = map[string]any{"failurePolicy": "Fail", "matchPolicy": "Equivalent", "scope": "*"}

// stripped returns a content without fields that are empty or have their defaults, which the API server may have added to a policy or
// binding. It is needed if the manifest must not be written, not even in a dry run that would return the stored form.
func (c content) stripped() content {
	left, _ := withoutDefaults(map[string]any(c)).(map[string]any)
	return left
}

func withoutDefaults(value any) any {
	switch value := value.(type) {
	case map[string]any:
		left := map[string]any{}
		for key, item := range value {
			if standard, is := defaults[key]; is && item == standard {
				continue
			}
			if item = withoutDefaults(item); item != nil {
				left[key] = item
			}
		}
		if len(left) == 0 {
			return nil
		}
		return left
	case []any:
		var left []any
		for _, item := range value {
			left = append(left, withoutDefaults(item))
		}
		if len(left) == 0 {
			return nil
		}
		return left
	default:
		return value
	}
}
