package readiness_test

import (
	"fmt"
	"testing"

	"github.com/vmstencil/stencil/test/gen"
)

// TestTheValuesThatApprovalsListAreChecked has a template whose image is a required parameter with a pattern: Stencil cannot know its values, until an
// approval lists them.
func TestTheValuesThatApprovalsListAreChecked(t *testing.T) {
	s := full.on(t)
	own := s.namespace(t)
	s.apply(t, own, dataSource(own, "fedora", "disk"))
	s.apply(t, own, image("disk"))
	s.apply(t, own, gen.Manifest(gen.Template("box", gen.Declares("NAME", "{required: true, generate: expression, from: 'vm-[a-z0-9]{5}'}"),
		gen.Declares("IMAGE", "{required: true, pattern: '[a-z]+'}"),
		gen.Renders("${NAME}", gen.LeastSpec(), gen.Memory("1Gi"), gen.DataVolumeDisk("root", "${NAME}-root", "sourceRef: {kind: DataSource, name: '${IMAGE}'}")))))
	s.becomes(t, own, "box", condition("SourcesReady"), `"status":"True"`, "DataSource "+own+"/${IMAGE} (ParameterRequired)")

	approval := func(images string) string {
		return gen.Manifest(gen.Approval("listed-"+own, gen.Governs("nowhere-"+own), gen.Approves(own+"/box"), gen.Spec("parameters: [{name: IMAGE, allowed: "+images+"}]")))
	}
	t.Cleanup(func() { s.must(t, "", "delete", "templateapproval", "listed-"+own, "--ignore-not-found") })
	s.must(t, approval("[fedora, debian]"), "apply", "-f", "-")
	s.becomes(t, own, "box", condition("Ready"), `"status":"False"`, fmt.Sprintf("volume ${NAME}-root: DataSource %s/debian does not exist", own))
	s.must(t, approval("[fedora]"), "apply", "-f", "-")
	s.becomes(t, own, "box", condition("Ready"), `"status":"True"`)
	s.becomes(t, own, "box", ".status.volumes[*].name", "${IMAGE}", "fedora")
	s.must(t, "", "delete", "templateapproval", "listed-"+own)
	s.eventually(t, "the value is not checked any more", func() error {
		if got := s.must(t, "", "get", "virtualmachinetemplate", "box", "-n", own, "-o", "jsonpath={.status.volumes[*].name}"); got != "${IMAGE}" {
			return fmt.Errorf("sources: %s", got)
		}
		return nil
	})
}
