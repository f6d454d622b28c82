package conflict

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRetry(t *testing.T) {
	lost := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "node-1", errors.New("the object has been modified"))
	other := errors.New("no connection")
	for name, tc := range map[string]struct {
		answers   []error
		want      error
		wantCalls int
	}{
		"a write that succeeds is made once":           {answers: []error{nil}, wantCalls: 1},
		"a write that loses is made again":             {answers: []error{lost, lost, nil}, wantCalls: 3},
		"a write that fails otherwise is an error":     {answers: []error{lost, other}, want: other, wantCalls: 2},
		"a write that always loses ends with an error": {answers: []error{lost}, want: lost, wantCalls: 20},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := Retry(func() error {
				calls++
				return tc.answers[min(calls, len(tc.answers))-1]
			})
			if !errors.Is(err, tc.want) || calls != tc.wantCalls {
				t.Errorf("want %v after %d calls, got %v after %d", tc.want, tc.wantCalls, err, calls)
			}
		})
	}
}
