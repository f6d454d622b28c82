package server

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// NamespaceVariable is the environment variable in which the chart sets a server's namespace.
const NamespaceVariable = "POD_NAMESPACE"

// namespaceFile is the file in which Kubernetes stores the namespace of every pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Lookup returns an environment variable; os.LookupEnv does.
type Lookup func(name string) (value string, found bool)

// Namespace returns the namespace that the server runs in; empty outside a pod.
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
