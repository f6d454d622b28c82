package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
)

// buildType describes how a release is built, and what its parameters mean.
const buildType = source + "/blob/main/docs/release.md"

// provenance is the predicate of in-toto's statements with the type https://slsa.dev/provenance/v1, whose specification has the meaning of the fields.
type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// resource is a resource descriptor of in-toto.
type resource struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

// provenance returns the predicate for all that is released: everything is built from one commit by one command. The builder is the command and not a
// service that users could trust instead of the signer, which is level 1 of SLSA.
func (r release) provenance() ([]byte, error) {
	var predicate provenance
	toolchain, _, _ := strings.Cut(runtime.Version(), " ")
	predicate.BuildDefinition.BuildType = buildType
	predicate.BuildDefinition.ExternalParameters = map[string]string{
		"source": "git+" + source + "@" + r.revision, "version": r.version, "repository": r.repository,
	}
	predicate.BuildDefinition.InternalParameters = map[string]string{
		"SOURCE_DATE_EPOCH": fmt.Sprint(r.created.Unix()), "go": toolchain,
	}
	predicate.BuildDefinition.ResolvedDependencies = []resource{
		{URI: "git+" + source + "@" + r.revision, Digest: map[string]string{"gitCommit": strings.TrimSuffix(r.revision, modified)}},
		{URI: "pkg:golang/toolchain@" + strings.TrimPrefix(toolchain, "go")},
	}
	if err := r.addDependencies(&predicate); err != nil {
		return nil, err
	}
	predicate.RunDetails.Builder.ID = source + "/tree/main/hack/release"
	text, err := json.MarshalIndent(predicate, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encoding the provenance: %w", err)
	}
	return text, nil
}
