package resume

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// cutting serves a content in pieces, and then fails; without ranges it begins again.
type cutting struct {
	content  []byte
	piece    int
	noRanges bool
	opened   int
	// changed is served from the second time on.
	changed []byte
}

var errReset = errors.New("connection reset")

func (c *cutting) open(_ context.Context, offset int64) (io.ReadCloser, int64, error) {
	c.opened++
	content := c.content
	if c.opened > 1 && c.changed != nil {
		content = c.changed
	}
	if c.noRanges {
		offset = 0
	}
	left := content[offset:]
	if c.piece < len(left) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(left[:c.piece]), failing{})), offset, nil
	}
	return io.NopCloser(bytes.NewReader(left)), offset, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errReset }

func TestReader(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 1000)
	other := bytes.Clone(content)
	other[5]++
	for name, tc := range map[string]struct {
		source cutting
		want   error
		opened int
	}{
		"a content that is not cut":                       {cutting{piece: 10_000}, nil, 1},
		"a content that is cut often continues":           {cutting{piece: 500}, nil, 20},
		"a source that never sends anything ends":         {cutting{}, errReset, Attempts + 1},
		"without ranges, a cut at the same byte ends":     {cutting{piece: 500, noRanges: true}, errReset, Attempts + 1},
		"without ranges, another content is not accepted": {cutting{piece: 500, noRanges: true, changed: other}, ErrChanged, 2},
	} {
		t.Run(name, func(t *testing.T) {
			tc.source.content = content
			r := NewReader(t.Context(), Content{Open: tc.source.open, Size: int64(len(content)), Wait: func(context.Context, int) error { return nil }})
			got, err := io.ReadAll(r)
			if !errors.Is(err, tc.want) || tc.want == nil && !bytes.Equal(got, content) || tc.source.opened != tc.opened {
				t.Errorf("%d bytes, opened %d times, error %v", len(got), tc.source.opened, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
