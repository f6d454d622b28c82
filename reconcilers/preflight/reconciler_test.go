package preflight

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/vmstencil/stencil/installation"
)

func TestChangesAreReportedOnce(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	r, err := New(Options{Config: &rest.Config{}, Release: "stencil-system/stencil", Recorder: recorder, Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	kubeVirt := func(phase string) installation.State {
		return installation.State{APIServer: "v1.34.1", KubeVirts: []installation.KubeVirt{{Product: installation.Product{Namespace: "kubevirt", Name: "kubevirt", Version: "v1.8.2", Phase: phase}}}}
	}
	const crd = "virtualmachinetemplates.template.kubevirt.io"
	ours := installation.Object{Annotations: map[string]string{"meta.helm.sh/release-name": "stencil", "meta.helm.sh/release-namespace": "stencil-system"}}
	for _, step := range []struct {
		name   string
		change func(*installation.State)
		want   []string
	}{
		{"the component is off", nil, []string{"Warning InstallationFinding warning: kubevirt/kubevirt, v1.8.2, Deployed; its template component is off"}},
		{"again", nil, nil},
		{"another phase", func(s *installation.State) { s.KubeVirts[0].Phase = "Deploying" }, nil},
		{"the gate is on", func(s *installation.State) {
			s.KubeVirts[0].Enabled, s.Objects = []string{"Template"}, map[string]installation.Object{crd: ours}
		}, []string{
			"Normal InstallationFindingSolved the warning about KubeVirt is solved",
			"Warning InstallationFinding problem: belongs to Helm release stencil-system/stencil: KubeVirt's rollout stops at it",
		}},
		{"the definition is another's", func(s *installation.State) {
			s.KubeVirts[0].Enabled, s.Objects = []string{"Template"}, map[string]installation.Object{crd: {}}
		}, []string{"Warning InstallationFinding problem: belongs to no known owner: Helm does not overwrite"}},
		{"the component stays off", func(s *installation.State) {
			off := false
			s.KubeVirts[0].Deploy, s.Objects = &off, map[string]installation.Object{crd: ours}
		}, []string{"Normal InstallationFindingSolved the problem about CustomResourceDefinition " + crd + " is solved"}},
	} {
		t.Run(step.name, func(t *testing.T) {
			state := kubeVirt("Deployed")
			if step.change != nil {
				step.change(&state)
			}
			r.report(t.Context(), state, installation.Check(state, "stencil-system/stencil"))
			var got []string
			for len(recorder.Events) > 0 {
				got = append(got, <-recorder.Events)
			}
			// Findings of one check are in no order.
			if len(got) == 2 && got[0] > got[1] {
				got[0], got[1] = got[1], got[0]
			}
			for i := range got {
				if i < len(step.want) && strings.HasPrefix(got[i], step.want[i]) {
					got[i] = step.want[i]
				}
			}
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
	if err := testutil.CollectAndCompare(r.findings, strings.NewReader(`
# HELP stencil_installation_findings Findings about KubeVirt's own template component, the definitions that it shares with Stencil, and webhooks after Stencil's, by level (ok, warning, problem) and subject.
# TYPE stencil_installation_findings gauge
stencil_installation_findings{level="ok",subject="API server"} 1
stencil_installation_findings{level="ok",subject="CustomResourceDefinition virtualmachinetemplates.template.kubevirt.io"} 1
stencil_installation_findings{level="ok",subject="KubeVirt"} 1
`)); err != nil {
		t.Error(err)
	}
}
