package validate

import (
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/vmstencil/stencil/approval"
	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

// judgeUpdate holds the change of a stored VM to the overrides of the approvals
// that approve its template. Neither the template nor the approvals' constraints
// on parameters are asked again: a VM that was created under other rules is the
// audit's business and must stay operable.
func judgeUpdate(request admission.Request, vm, stored machine.Machine, covering []*approval.Approval, rendered approval.Template) approval.Verdict {
	return approval.Judge(covering, approval.Question{
		User:     request.UserInfo,
		Template: rendered,
		Touched:  approval.Changes(stored.Object, vm.Object),
		Update:   true,
	})
}
