package controlplane

import (
	"context"
	"errors"
	"testing"
)

func TestComponentsAreStartedAgainOnlyWhenTheyLostTheirPort(t *testing.T) {
	lost := &endedError{process: "component", lostPort: true}
	other := &endedError{process: "component", log: "out of memory"}
	for name, tc := range map[string]struct {
		answers      []error
		wantAttempts int
		wantErr      error
	}{
		"a component that starts is started once":                     {answers: []error{nil}, wantAttempts: 1},
		"a component that lost its port is started again":             {answers: []error{lost, lost, nil}, wantAttempts: 3},
		"a component that fails for another reason is not":            {answers: []error{other}, wantAttempts: 1, wantErr: other},
		"a component that loses every port fails after some attempts": {answers: []error{lost, lost, lost, lost, lost}, wantAttempts: portAttempts, wantErr: lost},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			err := portChooser(freePorts).try(t.Context(), 2, func(_ context.Context, ports []int) error {
				if len(ports) != 2 || ports[0] == ports[1] {
					t.Errorf("want two different ports, got %v", ports)
				}
				attempts++
				return tc.answers[attempts-1]
			})
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("want error %v, got %v", tc.wantErr, err)
			}
			if attempts != tc.wantAttempts {
				t.Errorf("want %d attempts, got %d", tc.wantAttempts, attempts)
			}
		})
	}
}
