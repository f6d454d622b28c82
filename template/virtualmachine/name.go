package virtualmachine

const (
	// SuffixLength is the number of random characters at the end of a generated name, as in Kubernetes.
	SuffixLength = 5

	maxGeneratedName = 63
)

// GeneratedName returns a name for metadata.generateName. suffix returns its random end of SuffixLength characters.
func GeneratedName(prefix string, suffix func() string) string {
	if longest := maxGeneratedName - SuffixLength; len(prefix) > longest {
		prefix = prefix[:longest]
	}
	return prefix + suffix()
}
