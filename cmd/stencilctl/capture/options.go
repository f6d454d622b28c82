package capture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

// option is a field of a request that takes one of a few values. The first one is the default.
type option struct {
	flag, field, usage string
	values             []string
}

var options = []option{
	{"instancetype-mode", "instancetype", "how the instance type and the preference are handled", []string{
		string(v1beta1.CaptureInstancetypeExpand), string(v1beta1.CaptureInstancetypeKeep),
	}},
	{"run-strategy", "runStrategy", "whether VMs of the template run", []string{
		string(v1beta1.CaptureRunStrategyKeep), string(v1beta1.CaptureRunStrategyHalted),
	}},
	{"secrets", "secrets", "how passwords and private keys in cloud-init data are handled", []string{
		string(v1beta1.CaptureSecretsKeep), string(v1beta1.CaptureSecretsParameterize),
	}},
}

// parts are the values that can become parameters.
var parts = []string{
	string(v1beta1.CaptureName), string(v1beta1.CaptureInstancetypeName), string(v1beta1.CapturePreferenceName),
	string(v1beta1.CaptureStorageClass), string(v1beta1.CaptureNetwork), string(v1beta1.CaptureSSHKey),
}

// options registers the flags for the fields of a request.
func (c *capturing) options(flags *pflag.FlagSet) {
	c.chosen = map[string]*string{}
	for _, each := range options {
		value := new(string)
		c.chosen[each.field] = value
		flags.StringVar(value, each.flag, "", fmt.Sprintf("%s: %s (default %s)", each.usage, strings.Join(each.values, " or "), each.values[0]))
	}
	flags.BoolVar(&c.keepLayout, "keep-layout", false, "keep the machine type version and the PCI addresses that were pinned for the guest of the VM")
	flags.BoolVar(&c.secretize, "secretize", false, "VMs of the template have their cloud-init data in a Secret")
	flags.StringSliceVar(&c.include, "include", nil, "which objects of the VM the template gets too: "+strings.Join(includable, ", "))
	flags.StringSliceVar(&c.parameterize, "parameterize", nil, "what becomes a parameter besides NAME: "+strings.Join(parts[1:], ", "))
	flags.DurationVar(&c.limit, "limit", 0, "how long the request itself may take; then it fails and leaves nothing behind (default 1h)")
}

// check validates the option values.
func (c *capturing) check() error {
	for _, each := range options {
		if value := *c.chosen[each.field]; value != "" && !slices.Contains(each.values, value) {
			return fmt.Errorf("--%s: %q is none of %s", each.flag, value, strings.Join(each.values, ", "))
		}
	}
	for _, kind := range c.include {
		if !slices.Contains(includable, kind) {
			return fmt.Errorf("--include: %q is none of %s", kind, strings.Join(includable, ", "))
		}
	}
	for _, part := range c.parameterize {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("--parameterize: %q is none of %s", part, strings.Join(parts, ", "))
		}
	}
	return nil
}
