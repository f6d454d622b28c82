package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// plan is the content of suites.yaml.
type plan struct {
	// CalibrationSeconds is how long the calibration takes on the machine that the budgets are for, see calibrate.
	CalibrationSeconds float64          `json:"calibrationSeconds"`
	Suites             map[string]suite `json:"suites"`
	// DefaultSeconds is the budget of a package that Seconds does not name.
	DefaultSeconds float64 `json:"defaultSeconds"`
	// Seconds are budgets of packages by their folder in the checkout.
	Seconds map[string]float64 `json:"seconds"`
}

// suite is what one command runs.
type suite struct {
	// Seconds is the budget of the whole.
	Seconds float64 `json:"seconds"`
	// Images is set if Stencil's servers run from the images of a release, which is built before.
	Images  bool     `json:"images,omitempty"`
	Modules []module `json:"modules"`
}

// module is one call of `go test`.
type module struct {
	// Path is the folder of the module in the checkout.
	Path string `json:"path"`
	// Packages are patterns relative to it; all packages when empty.
	Packages []string `json:"packages,omitempty"`
	// Parallel is how many packages run at a time; the number of processors when 0.
	Parallel int  `json:"parallel,omitempty"`
	Race     bool `json:"race,omitempty"`
	// Marked limits the call to tests with this mark, see marks; empty means those without one.
	Marked string `json:"marked,omitempty"`
	Tags   string `json:"tags,omitempty"`
	// Cgo is set if the tests are linked with C.
	Cgo bool `json:"cgo,omitempty"`
	// Libvirt is set if some of the packages start libvirt and QEMU of this host.
	Libvirt bool `json:"libvirt,omitempty"`
	// QemuImg is set if some of the packages run the qemu-img of this host.
	QemuImg bool `json:"qemuImg,omitempty"`
}

func readPlan(root string) (*plan, error) {
	path := filepath.Join(root, "test", "suites.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the suites: %w", err)
	}
	var read plan
	if err := yaml.UnmarshalStrict(content, &read); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &read, nil
}

// suite returns the suite of that name.
func (p *plan) suite(name string) (suite, error) {
	found, ok := p.Suites[name]
	if !ok {
		var names []string
		for each := range p.Suites {
			names = append(names, each)
		}
		slices.Sort(names)
		return suite{}, fmt.Errorf("there is no suite %q; there are %s", name, strings.Join(names, ", "))
	}
	return found, nil
}

// only returns a suite of one module of end-to-end tests with these packages and no budget.
func only(packages []string) suite {
	return suite{Modules: []module{{Path: "test", Packages: packages}}}
}

// budget is how many seconds a package may take on a quiet host.
func (p *plan) budget(folder string) float64 {
	if seconds, ok := p.Seconds[folder]; ok {
		return seconds
	}
	return p.DefaultSeconds
}

// of returns the part of a suite with one package of the module of end-to-end tests, without a budget.
func (s suite) of(pattern string) suite {
	part := s
	part.Seconds, part.Modules = 0, nil
	for _, each := range s.Modules {
		if each.Path == "test" && slices.ContainsFunc(each.Packages, func(one string) bool {
			start, all := strings.CutSuffix(one, "/...")
			return one == pattern || all && (start == pattern || strings.HasPrefix(pattern, start+"/"))
		}) {
			each.Packages = []string{pattern}
			part.Modules = append(part.Modules, each)
		}
	}
	return part
}
