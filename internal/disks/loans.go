package disks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	contract "github.com/vmstencil/stencil/api/template"
	"github.com/vmstencil/stencil/template"
)

// Lender is the template of a VirtualMachine, as it lends the sources of disks.
type Lender struct {
	Namespace, Name string
	// Labels of the template.
	Labels map[string]string
	// Compiled is nil if the template does not exist any more, or is invalid.
	Compiled *template.Compiled
}

// Lends reports whether the owner of the template lends its disks.
func (l Lender) Lends() bool { return l.Labels[contract.LabelDiskAccess] == contract.DiskAccessLend }

// Loan is one of the dataVolumeTemplates of a VirtualMachine that copies its content from another namespace.
type Loan struct {
	Template
	// DataVolume is the entry of dataVolumeTemplates. It must not be modified.
	DataVolume map[string]any
	Source     Source
	// Denial is why the template does not lend the source; empty if it does.
	Denial string
}

// foreign yields the names of dataVolumeTemplates in the spec of a VirtualMachine, and the sources in other namespaces that they copy.
func foreign(spec map[string]any, namespace string) iter.Seq2[string, Source] {
	return func(yield func(string, Source) bool) {
		for _, entry := range list(spec, "dataVolumeTemplates") {
			for _, source := range filledFrom(nil, object(object(entry)["spec"]), namespace) {
				if source.foreign(namespace) && !yield(text(object(object(entry)["metadata"])["name"]), source) {
					return
				}
			}
		}
	}
}

// Foreign reports whether one of the dataVolumeTemplates in the spec of a VirtualMachine copies its content from another namespace.
func Foreign(spec map[string]any, namespace string) bool {
	for range foreign(spec, namespace) {
		return true
	}
	return false
}

// Borrowed identifies the disks in the spec of a VirtualMachine that are copied from other namespaces, and what they are copied from; empty if there are none.
func Borrowed(spec map[string]any, namespace string) string {
	var found []string
	for name, source := range foreign(spec, namespace) {
		found = append(found, fmt.Sprintf("%q %s %s/%s", name, source.Kind, source.Namespace, source.Name))
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	sum := sha256.Sum256([]byte(strings.Join(found, "\n")))
	return hex.EncodeToString(sum[:8])
}

// Grant returns the command that permits KubeVirt to copy the source for the VirtualMachines of a namespace: the permission of its ServiceAccount.
func (s Source) Grant(namespace string) string {
	return fmt.Sprintf("kubectl create role copy-to-%[1]s -n %[2]s --verb=create --resource=datavolumes.cdi.kubevirt.io/source && kubectl create rolebinding copy-to-%[1]s -n %[2]s --role=copy-to-%[1]s --serviceaccount=%[1]s:default", namespace, s.Namespace)
}

func (s Source) foreign(namespace string) bool { return s.Kind != "" && s.Namespace != namespace }

// Loans returns the dataVolumeTemplates of a VirtualMachine in a namespace that copy from another namespace, in their order. vm is decoded JSON.
//
// A template lends the sources that it names: as constants, by the default of a parameter or by a value that it lists for the parameter. A value
// that a user chose freely is a source of the user, who needs the permission to copy it. The template lends sources of its own namespace only,
// because its owner has no say in others.
func Loans(vm map[string]any, namespace string, lender Lender) ([]Loan, error) {
	var loans []Loan
	path := field.NewPath("spec", "dataVolumeTemplates")
	for i, entry := range list(object(vm["spec"]), "dataVolumeTemplates") {
		dataVolume := object(entry)
		found := filledFrom(path.Index(i).Child("spec"), object(dataVolume["spec"]), namespace)
		foreign := slices.IndexFunc(found, func(source Source) bool { return source.foreign(namespace) })
		if foreign < 0 {
			continue
		}
		loan := Loan{
			Template:   Template{Name: text(object(dataVolume["metadata"])["name"]), Field: path.Index(i).Child("metadata", "name").String()},
			DataVolume: dataVolume, Source: found[foreign],
		}
		spec := object(dataVolume["spec"])
		switch source := loan.Source; {
		case lender.Compiled == nil:
			loan.Denial = fmt.Sprintf("VirtualMachineTemplate %s/%s, which the VirtualMachine was rendered from, does not exist any more, or is invalid", lender.Namespace, lender.Name)
		// The label would not help.
		case source.Namespace != lender.Namespace:
			loan.Denial = fmt.Sprintf("VirtualMachineTemplate %s/%s lends only what is in its own namespace, and %s %s/%s is not", lender.Namespace, lender.Name, source.Kind, source.Namespace, source.Name)
		case !lender.Lends():
			loan.Denial = fmt.Sprintf("VirtualMachineTemplate %s/%s does not lend its disks: it lacks label %s=%s", lender.Namespace, lender.Name, contract.LabelDiskAccess, contract.DiskAccessLend)
		case len(found) > 1 || object(spec["sourceRef"]) == nil && object(spec["source"]) == nil:
			loan.Denial = "only a single source or sourceRef is lent"
		}
		loans = append(loans, loan)
	}
	if !slices.ContainsFunc(loans, func(loan Loan) bool { return loan.Denial == "" }) {
		return loans, nil
	}
	named, denial, err := lender.sources(vm, namespace)
	if err != nil {
		return nil, err
	}
	for i := range loans {
		switch loan := &loans[i]; {
		case loan.Denial != "":
		case denial != "":
			loan.Denial = denial
		case !slices.ContainsFunc(named, loan.Source.Same):
			loan.Denial = fmt.Sprintf("VirtualMachineTemplate %s/%s does not name %s %s/%s", lender.Namespace, lender.Name, loan.Source.Kind, loan.Source.Namespace, loan.Source.Name)
		}
	}
	return loans, nil
}

// sources returns the sources that the template names with the values that the VirtualMachine shows. denial is not empty if one of them was
// chosen freely.
func (l Lender) sources(vm map[string]any, namespace string) (named []Source, denial string, err error) {
	match, err := l.Compiled.Match(vm)
	if err != nil {
		return nil, "", err
	}
	values := match.Values()
	for _, p := range l.Compiled.Parameters() {
		value, shown := values[p.Name]
		free := p.Generate != "" || shown && value != p.Value && !slices.Contains(p.Enum, value) || !shown && p.Value == "" && p.Required
		if free && l.Compiled.SelectsSource(p.Name) {
			return nil, fmt.Sprintf("parameter %s selects the source, and its value is neither the default nor one that VirtualMachineTemplate %s/%s lists", p.Name, l.Namespace, l.Name), nil
		}
	}
	rendered, err := l.Compiled.Reconstruct(match)
	if err != nil {
		return nil, "", fmt.Errorf("rendering VirtualMachineTemplate %s/%s with the values of its VirtualMachine: %w", l.Namespace, l.Name, err)
	}
	for _, entry := range list(object(rendered.Object()["spec"]), "dataVolumeTemplates") {
		named = append(named, filledFrom(nil, object(object(entry)["spec"]), namespace)...)
	}
	return named, "", nil
}
