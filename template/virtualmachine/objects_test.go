package virtualmachine_test

import (
	"testing"

	machine "github.com/vmstencil/stencil/template/virtualmachine"
)

func TestADenialNamesFiveObjects(t *testing.T) {
	const want = `template golden/web has other objects, which are not created together with the VirtualMachine here (A a, B b, C c, D d, E e and 2 more); use "stencilctl process golden/web … | kubectl create -f -"`
	if got := machine.ObjectsDenial("golden/web", "golden/web", []string{"A a", "B b", "C c", "D d", "E e", "F f", "G g"}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
