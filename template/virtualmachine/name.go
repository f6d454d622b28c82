package virtualmachine

const (
	// SuffixLength is how many random characters a generated name ends in, as those of
	// Kubernetes do.
	SuffixLength = 5

	maxGeneratedName = 63
)

// GeneratedName is the name that metadata.generateName asks for. suffix makes its
// random end, SuffixLength characters long.
func GeneratedName(prefix string, suffix func() string) string {
	if longest := maxGeneratedName - SuffixLength; len(prefix) > longest {
		prefix = prefix[:longest]
	}
	return prefix + suffix()
}
