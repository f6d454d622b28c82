package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vmstencil/stencil/test/controlplane"
)

// Names of files in the folder of a node.
const (
	configFile = "node.json"
	// AttachmentFile has the controlplane.Attachment of the node, and appears when the node is ready.
	AttachmentFile = "attachment.json"
	// APISocket accepts connections to the API server, RegistrySocket connections to the registry.
	APISocket      = "api.sock"
	RegistrySocket = "registry.sock"
)

// Addresses inside of the node's network.
const (
	// Address is the node's.
	Address = "10.90.0.1"
	// Registry is the host and the port of the registry, by HTTP.
	Registry = Address + ":5000"
	// SecureRegistry is the same by HTTPS, with a certificate of the authority in the ConfigMaps kube-root-ca.crt.
	SecureRegistry = Address + ":5001"
	// Pause is the image that holds the namespaces of pods.
	Pause = "stencil.test/pause:1"
	// Name is the name of the node.
	Name = "node-1"

	podRange = "10.244.0.0/16"
)

// Networks are the networks of the node, its pods and Services.
var Networks = []string{Address + "/32", podRange, controlplane.ServiceRange}

// Config is the configuration of a node.
type Config struct {
	// Folder has everything that the node writes.
	Folder string
	// ID is in the name of the node's control groups.
	ID string
	// Stores are folders of image.Store, whose images are in the registry.
	Stores []string
}

// Write writes the configuration to its folder.
func (c Config) Write() error {
	content, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Folder, configFile), content, 0o600)
}

// Read reads the configuration in a folder.
func Read(folder string) (Config, error) {
	var c Config
	content, err := os.ReadFile(filepath.Join(folder, configFile))
	if err == nil {
		err = json.Unmarshal(content, &c)
	}
	if err != nil {
		return c, fmt.Errorf("reading the configuration of the node: %w", err)
	}
	return c, nil
}

func (c Config) file(elements ...string) string {
	return filepath.Join(append([]string{c.Folder}, elements...)...)
}

// write writes a file below the node's folder, and returns its path.
func (c Config) write(content string, elements ...string) (string, error) {
	path := c.file(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(content), 0o600)
}
