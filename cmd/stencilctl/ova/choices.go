package ova

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/ovf/conversion"
)

var (
	buses      = []string{conversion.BusSATA, conversion.BusSCSI, conversion.BusVirtio}
	deliveries = []string{string(conversion.DeliveryEnvironment), string(conversion.DeliveryCloudInit), string(conversion.DeliveryNone)}
)

// choices are the flags by which users choose what templates become.
type choices struct {
	chosen               conversion.Options
	preference, delivery string
}

func (c *choices) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVarP(&c.chosen.Namespace, "namespace", "n", "", "namespace of the templates and of their disks")
	flags.StringVar(&c.chosen.Name, "name", "", "name of the template, or what names begin with if there are several (default that of the virtual system)")
	flags.StringVar(&c.chosen.Configuration, "deployment-option", "", "ID of a configuration of the package (default that of the package)")
	flags.StringToStringVar(&c.chosen.Networks, "network", nil, "network of the package, and pod or the NetworkAttachmentDefinition for it: NETWORK=NAME; may be repeated")
	flags.StringVar(&c.chosen.DiskBus, "disk-bus", "", "bus of all disks: "+strings.Join(buses, ", ")+" (default virtio for disks at virtio controllers, sata for others)")
	flags.StringVar(&c.chosen.StorageClass, "storage-class", "", "StorageClass of the disks (default that of the cluster)")
	flags.StringVar(&c.chosen.Instancetype, "instancetype", "", "VirtualMachineClusterInstancetype, which has the CPUs and the memory (default none: those of the package)")
	flags.StringVar(&c.preference, "preference", "", `VirtualMachineClusterPreference; "" for none (default one for the operating system)`)
	flags.StringVar(&c.delivery, "delivery", "", "how guests get the values of properties: "+strings.Join(deliveries, ", ")+" (default by their names)")
	cli.Alias(command, "instancetype-name", "instancetype")
	cli.Alias(command, "configuration", "deployment-option")
	for name, values := range map[string][]string{"disk-bus": buses, "delivery": deliveries} {
		// It fails only for a flag that does not exist.
		_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// options returns the options of an import.
func (c *choices) options(command *cobra.Command) (conversion.Options, error) {
	options := c.chosen
	if err := oneOf("--disk-bus", options.DiskBus, buses); err != nil {
		return options, err
	}
	if err := oneOf("--delivery", c.delivery, deliveries); err != nil {
		return options, err
	}
	options.Delivery = conversion.Delivery(c.delivery)
	if command.Flags().Changed("preference") {
		options.Preference = &c.preference
	}
	return options, nil
}

// oneOf rejects a value of a flag that is none of a list.
func oneOf(flag, value string, allowed []string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return cli.Usage(fmt.Errorf("%s: %q is none of %s", flag, value, strings.Join(allowed, ", ")))
}
