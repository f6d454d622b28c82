package server

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// NamespaceVariable is how the chart tells a server its own namespace.
const NamespaceVariable = "POD_NAMESPACE"

// namespaceFile is where Kubernetes tells every pod its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Lookup finds an environment variable; os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// Namespace finds out the namespace that the server runs in; empty outside a pod.
func Namespace(environment Lookup) (string, error) {
	if own, _ := environment(NamespaceVariable); own != "" {
		return own, nil
	}
	content, err := os.ReadFile(namespaceFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("finding out the server's own namespace: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
