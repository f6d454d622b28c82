// Package registry transfers artifacts from and to container registries (https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md). Transfers that
// are cut continue where they ended.
package registry
