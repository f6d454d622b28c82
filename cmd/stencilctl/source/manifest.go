package source

import (
	"os"
	"path/filepath"
	"strings"
)

// IsManifest reports whether an argument is a manifest's file rather than the name of an object, which may also end in .yaml.
func IsManifest(name string) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml", ".json":
		info, err := os.Stat(name)
		return err == nil && info.Mode().IsRegular()
	}
	return false
}
