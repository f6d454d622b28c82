package packing

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	"github.com/vmstencil/stencil/disk/rawzstd"
	"github.com/vmstencil/stencil/disk/vmdk"
)

// Compressions are the names of all compressions. The first one is the default.
var Compressions = []string{string(v1beta1.ExportCompressionFast), string(v1beta1.ExportCompressionBest), string(v1beta1.ExportCompressionNone)}

// CheckCompression rejects a compression that does not exist. An empty one is the default.
func CheckCompression(compression v1beta1.ExportCompression) error {
	if compression != "" && !slices.Contains(Compressions, string(compression)) {
		return fmt.Errorf("there is no compression %q: want one of %s", compression, strings.Join(Compressions, ", "))
	}
	return nil
}

// grains returns how the grains of VMDKs are written.
func grains(compression v1beta1.ExportCompression) (vmdk.Encoding, error) {
	switch compression {
	case "", v1beta1.ExportCompressionFast:
		return vmdk.Fast, nil
	case v1beta1.ExportCompressionBest:
		return vmdk.Best, nil
	case v1beta1.ExportCompressionNone:
		return vmdk.Uncompressed, nil
	}
	return "", CheckCompression(compression)
}

// NewCompressor returns what writes the layers of an artifact, by as many goroutines as there are processors.
func NewCompressor(compression v1beta1.ExportCompression) (*rawzstd.Compressor, error) {
	switch compression {
	case "", v1beta1.ExportCompressionFast:
		return rawzstd.NewCompressor(rawzstd.Fast, 0)
	case v1beta1.ExportCompressionBest:
		return rawzstd.NewCompressor(rawzstd.Best, 0)
	case v1beta1.ExportCompressionNone:
		return rawzstd.NewCompressor(rawzstd.Uncompressed, 0)
	}
	return nil, CheckCompression(compression)
}
