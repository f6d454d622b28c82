package policyapply

import (
	"slices"
	"strings"
)

// found is a stored policy.
type found struct {
	name string
	// ours is set if it carries the label of the owner.
	ours bool
	// generation of its spec, digest of the manifest that it was last applied from.
	generation int64
	digest     string
	// applied is the generation after this process applied it; 0 if it has not applied it.
	applied int64
}

// Plan holds policies to change.
type Plan struct {
	// Apply are the manifests to apply.
	Apply []Manifest
	// Remove are the names of policies of the owner without a manifest.
	Remove []string
	// Foreign are the names of manifests whose policies exist without the label.
	Foreign []string
}

// decide returns the plan. stored are the policies that have a manifest or carry the label.
func decide(manifests []Manifest, stored []found) Plan {
	var p Plan
	byName := map[string]found{}
	for _, each := range stored {
		byName[each.name] = each
	}
	for _, manifest := range manifests {
		is, exists := byName[manifest.Name]
		switch {
		case exists && !is.ours:
			p.Foreign = append(p.Foreign, manifest.Name)
		case exists && is.digest == manifest.Digest && is.generation == is.applied:
		default:
			p.Apply = append(p.Apply, manifest)
		}
	}
	for _, is := range stored {
		stays := slices.ContainsFunc(manifests, func(manifest Manifest) bool { return manifest.Name == is.name })
		if is.ours && !stays {
			p.Remove = append(p.Remove, is.name)
		}
	}
	slices.SortFunc(p.Remove, strings.Compare)
	return p
}
