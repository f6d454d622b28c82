package traffic

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(second int, kind Kind, conflicts int, result Result) Write {
		return Write{Began: began.Add(time.Duration(second) * time.Second), Took: time.Duration(second) * time.Millisecond,
			Kind: kind, User: "ada", Conflicts: conflicts, Result: result}
	}
	report := Report{NotSent: 3, Writes: []Write{
		write(1, CreateVM, 0, Result{Class: Written}),
		write(2, UpdateVMSpec, 2, Result{Class: Written}),
		write(3, CreateVM, 0, Result{Class: Denied, By: "stencil-governed-machines", Message: "no template"}),
		write(4, CreateVM, 0, Result{Class: Denied, By: "stencil-governed-machines", Broken: true, Message: "failed to configure policy"}),
		write(5, CreateVM, 0, Result{Class: Denied, By: "render.template.kubevirt.io", Message: "no such template"}),
		write(6, CreateVM, 0, Result{Class: Denied, By: "virtualmachine-validator.kubevirt.io", Message: "no disk"}),
		write(7, UpdateVMSpec, 0, Result{Class: Rejected, Reason: "Forbidden", Message: "may not"}),
		write(8, UpdateVMSpec, 0, Result{Class: Unavailable, Reason: "ConnectionRefused", Message: "refused"}),
	}}
	want := `write           user  written  denied  rejected  unavailable  conflicts  slowest
create VM       ada   1        4       0         0            0          6ms
update VM spec  ada   1        0       1         1            2          8ms
denied because stencil-governed-machines could not be evaluated: 1, such as: failed to configure policy
denied by render.template.kubevirt.io: 1, such as: no such template
denied by stencil-governed-machines: 1, such as: no template
denied by virtualmachine-validator.kubevirt.io: 1, such as: no disk
rejected: Forbidden: 1, such as: may not
unavailable: ConnectionRefused: 1, such as: refused
not sent, because too many writes had no answer yet: 3
`
	if diff := cmp.Diff(want, report.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct{ want, got int }{
		"written":                         {want: 2, got: report.Count(Written)},
		"denied by policies of a release": {want: 2, got: report.DeniedBy("stencil-")},
		"denied by one of two":            {want: 3, got: report.DeniedBy("stencil-", "render")},
		"denied by Stencil":               {want: 3, got: report.DeniedByStencil()},
		"written of one kind":             {want: 1, got: report.Of(CreateVM).Count(Written)},
		"denied in a time":                {want: 2, got: report.Between(began.Add(3*time.Second), began.Add(5*time.Second)).Count(Denied)},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: want %d, got %d", name, tc.want, tc.got)
		}
	}
}
