package policydata

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakecache "k8s.io/client-go/tools/cache/testing"

	"github.com/vmstencil/stencil/internal/fixture"
	"github.com/vmstencil/stencil/rego"
)

func configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "stencil", Name: "allowed"}, Data: data}
}

// bound returns the value of a key as JSON, or the reason why there is none.
func bound(c *Cache, name, key string) string {
	binding := c.Bind([]rego.Reference{{Name: "x", ConfigMap: name, Key: key}})[0]
	if binding.Value == nil {
		return binding.Missing
	}
	return string(binding.Value.JSON())
}

func TestCache(t *testing.T) {
	source := fakecache.NewFakeControllerSource()
	source.Add(configMap(map[string]string{
		"list": "- a\n- b\n", "object": `{"a": 1.50}`, "text": "just text\n", "number": "12", "empty": "", "invalid": "a: [1", "twice": "a: 1\na: 2\n",
		"several": "a: 1\n---\nb: 2\n", "first": "---\na: 1\n", "large": strings.Repeat("x", MaximumBytes+1), "bomb": bomb(),
	}))
	c := newCache(Options{Logger: logr.Discard(), Namespace: "stencil"}, sources{configMaps: source})
	if got, want := bound(c, "allowed", "list"), "the ConfigMaps of namespace stencil have not been read yet; the log of the manager has the reason"; got != want {
		t.Errorf("before the first list: %q, want %q", got, want)
	}
	first := c.Changed()
	fixture.Run(t, c.Start)
	fixture.Eventually(t, c.Synced)
	<-first
	for key, want := range map[string]string{
		"list":    `["a","b"]`,
		"object":  `{"a":1.5}`,
		"text":    `"just text\n"`,
		"number":  `"12"`,
		"empty":   `""`,
		"first":   `{"a":1}`,
		"invalid": "key invalid of ConfigMap stencil/allowed is no valid YAML: line 1: did not find expected ',' or ']'",
		"twice":   `key twice of ConfigMap stencil/allowed is no valid YAML: unmarshal errors: line 2: key "a" already set in map`,
		"several": "key several of ConfigMap stencil/allowed has several YAML documents; one is allowed",
		"large":   "key large of ConfigMap stencil/allowed has 65537 bytes; at most 65536 are allowed",
		"none":    "ConfigMap stencil/allowed has no key none; add it to its data",
	} {
		if got := bound(c, "allowed", key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if got := bound(c, "allowed", "bomb"); !strings.HasPrefix(got, "key bomb of ConfigMap stencil/allowed ") {
		t.Errorf("aliases of aliases: %.200q", got)
	}
	if got, want := bound(c, "other", "list"), "ConfigMap stencil/other does not exist; create it with the key list"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	next := c.Changed()
	source.Modify(configMap(map[string]string{"list": "[c]"}))
	<-next
	if got := bound(c, "allowed", "list"); got != `["c"]` {
		t.Errorf("after a change: %s", got)
	}
	next = c.Changed()
	source.Delete(configMap(nil))
	<-next
	if got, want := bound(c, "allowed", "list"), "ConfigMap stencil/allowed does not exist; create it with the key list"; got != want {
		t.Errorf("after the deletion: %q, want %q", got, want)
	}
}

// bomb is YAML with aliases that make a large value of a short text.
func bomb() string {
	var text strings.Builder
	text.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		previous := string(rune('0' + i - 1))
		text.WriteString("a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.TrimSuffix(strings.Repeat("*a"+previous+", ", 10), ", ") + "]\n")
	}
	return text.String()
}
