package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/vmstencil/stencil/cmd/stencilctl/cli"
	"github.com/vmstencil/stencil/internal/testfile"
)

const reference = "../../docs/reference/stencilctl.md"

// word is a flag of the vocabulary that commands share.
type word struct {
	shorthand string
	// types of its value.
	types []string
	// means matches its usage in every command: a flag with another one would have another meaning.
	means string
	// not are other names for the same, which no command has.
	not []string
}

// vocabulary are the flags that several commands have.
var vocabulary = map[string]word{
	"output":            {"o", []string{"FORMAT"}, `^format of the output: `, []string{"format", "out"}},
	"param":             {"p", []string{"stringArray", "stringToString"}, `values? of (a )?parameters?\b`, []string{"parameter", "set", "value", "values"}},
	"params-file":       {"", []string{"string"}, `^file with values of parameters`, []string{"param-file", "values-file", "parameters-file"}},
	"dry-run":           {"", []string{"STRATEGY"}, `^none, client .* or server`, []string{"simulate", "preview"}},
	"wait":              {"", []string{"bool"}, `^wait `, []string{"no-wait", "follow"}},
	"timeout":           {"", []string{"duration"}, `^how long to wait`, []string{"wait-timeout"}},
	"poll-interval":     {"", []string{"duration"}, `^interval between two checks`, []string{"interval"}},
	"all-namespaces":    {"A", []string{"bool"}, `^all namespaces$`, nil},
	"filename":          {"f", []string{"string", "stringSlice"}, `^files?\b`, []string{"files", "manifest"}},
	"namespace":         {"n", []string{"string", "stringSlice"}, `^namespace\b`, []string{"ns", "in-namespace"}},
	"target-namespace":  {"", []string{"string"}, `^namespace of the VirtualMachine`, []string{"to-namespace"}},
	"selector":          {"l", []string{"string"}, `label`, []string{"label-selector"}},
	"labels":            {"", []string{"stringToString"}, `^labels of the template`, []string{"template-labels"}},
	"instancetype":      {"", []string{"string"}, `^VirtualMachineClusterInstancetype\b`, []string{"instancetype-name", "instance-type"}},
	"instancetype-file": {"", []string{"stringSlice"}, `^files with the instance types?\b`, []string{"instancetypes", "sizes"}},
	"preference":        {"", []string{"string"}, `^VirtualMachineClusterPreference\b`, []string{"preference-name"}},
	"preference-file":   {"", []string{"stringSlice"}, `^files with the preferences\b`, []string{"preferences"}},
	"template-file":     {"t", []string{"string", "stringSlice"}, `^files? with the templates?\b`, nil},
	"policy":            {"p", []string{"stringSlice"}, `^files or folders with policies$`, []string{"policies"}},
	"exception":         {"", []string{"stringSlice"}, `^files or folders with PolicyExceptions`, []string{"exceptions"}},
	"output-file":       {"", []string{"string"}, `to write\b`, []string{"out-file"}},
	"output-folder":     {"", []string{"string"}, `^folder to write`, []string{"output-dir", "folder"}},
	"storage-class":     {"", []string{"string"}, `(?i)^storage ?class of `, []string{"storageclass"}},
	"network":           {"", []string{"stringToString"}, `^network of the package`, []string{"networks"}},
	"deployment-option": {"", []string{"string"}, `^ID of a configuration`, []string{"configuration"}},
	"verification":      {"", []string{"string", "FORMAT"}, `^whether .* verified`, []string{"verify"}},
	"architecture":      {"", []string{"string", "stringSlice"}, `^architectures?\b`, []string{"arch", "architectures"}},
	"compression":       {"", []string{"FORMAT"}, `^how strongly .* compressed`, []string{"compress"}},
	"secret":            {"", []string{"string"}, `^Secret `, []string{"secret-name", "pull-secret"}},
	"certificates":      {"", []string{"string"}, `^ConfigMap with certificates`, []string{"ca-configmap"}},
	"request-dry-run":   {"", []string{"bool"}, `^the request is a dry run`, nil},
}

// shortened are letters with two meanings: -p is a value of a parameter, and in commands about policies a policy. Both are what their commands are about.
var shortened = map[string][]string{"p": {"param", "policy"}}

// flagOf is a flag that a command has.
type flagOf struct {
	command string
	*pflag.Flag
}

// ownFlags returns the flags of all commands, without help, old names, and those that options lists.
func ownFlags(root *cobra.Command) (all []flagOf) {
	each(root, func(command *cobra.Command) {
		command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden && flag.Annotations[cli.Connection] == nil && flag.Name != "help" && flag.Name != "version" {
				all = append(all, flagOf{strings.TrimPrefix(command.CommandPath(), "stencilctl "), flag})
			}
		})
	})
	return all
}

// each visits a command and those below it, in alphabetical order.
func each(command *cobra.Command, visit func(*cobra.Command)) {
	if command.Hidden {
		return
	}
	visit(command)
	for _, below := range command.Commands() {
		each(below, visit)
	}
}

// TestFlagsHaveOneNameAndOneMeaning finds flags that differ in their name or in their meaning only.
func TestFlagsHaveOneNameAndOneMeaning(t *testing.T) {
	for _, problem := range ambiguities(ownFlags(newCommand("stencilctl", cli.Streams{}))) {
		t.Error(problem)
	}
}

func ambiguities(flags []flagOf) (problems []string) {
	instead, usages, letters := map[string]string{}, map[string]string{}, map[string]string{}
	for name, word := range vocabulary {
		for _, other := range word.not {
			instead[other] = name
		}
	}
	report := func(flag flagOf, format string, arguments ...any) {
		problems = append(problems, fmt.Sprintf("--%s of %s ", flag.Name, flag.command)+fmt.Sprintf(format, arguments...))
	}
	for _, flag := range flags {
		if name := instead[flag.Name]; name != "" {
			report(flag, "is another name for --%s", name)
		}
		if name, found := usages[flag.Usage]; found && name != flag.Name {
			report(flag, "means the same as --%s: %s", name, flag.Usage)
		}
		usages[flag.Usage] = flag.Name
		if name, found := letters[flag.Shorthand]; flag.Shorthand != "" && found && name != flag.Name && !slices.Contains(shortened[flag.Shorthand], flag.Name) {
			report(flag, "has the letter -%s of --%s", flag.Shorthand, name)
		}
		letters[flag.Shorthand] = flag.Name
		word, shared := vocabulary[flag.Name]
		switch {
		case !shared:
			continue
		case flag.Shorthand != "" && flag.Shorthand != word.shorthand:
			report(flag, "has the letter -%s, and not -%s", flag.Shorthand, word.shorthand)
		case !slices.Contains(word.types, flag.Value.Type()):
			report(flag, "takes a %s, and not one of %s", flag.Value.Type(), strings.Join(word.types, ", "))
		case !regexp.MustCompile(word.means).MatchString(flag.Usage):
			report(flag, "means something else than elsewhere: %s", flag.Usage)
		}
	}
	return problems
}

// TestAmbiguitiesAreFound adds flags that contradict the vocabulary.
func TestAmbiguitiesAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		register func(*pflag.FlagSet)
		want     string
	}{
		"another name": {func(flags *pflag.FlagSet) { flags.String("format", "", "how it is printed") }, "--format of new is another name for --output"},
		"another meaning": {func(flags *pflag.FlagSet) { flags.String("instancetype", "", "Expand or Keep") },
			"--instancetype of new means something else than elsewhere: Expand or Keep"},
		"another type":    {func(flags *pflag.FlagSet) { flags.Bool("dry-run", false, "only print") }, "--dry-run of new takes a bool, and not one of STRATEGY"},
		"another letter":  {func(flags *pflag.FlagSet) { flags.StringP("selector", "s", "", "label selector") }, "--selector of new has the letter -s, and not -l"},
		"a letter in use": {func(flags *pflag.FlagSet) { flags.StringP("folder-of-files", "f", "", "where") }, "--folder-of-files of new has the letter -f of --filename"},
		"the same, two names": {func(flags *pflag.FlagSet) { flags.Bool("everywhere", false, "all namespaces") },
			"--everywhere of new means the same as --all-namespaces: all namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			root := newCommand("stencilctl", cli.Streams{})
			// Commands are sorted by their names; it is the last.
			added := &cobra.Command{Use: "new", Run: func(*cobra.Command, []string) {}}
			tc.register(added.Flags())
			flags := ownFlags(root)
			added.Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, flagOf{"new", flag}) })
			if diff := cmp.Diff([]string{tc.want}, ambiguities(flags)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheReference compares the page with the help of all commands, and writes it with -update.
func TestTheReference(t *testing.T) {
	got := referencePage(newCommand("stencilctl", cli.Streams{}))
	if *update {
		testfile.Write(t, reference, got)
	}
	if diff := cmp.Diff(string(testfile.Read(t, reference)), got); diff != "" {
		t.Errorf("%s (-want +got), write it with go test ./cmd/stencilctl -run TestTheReference -update:\n%s", reference, diff)
	}
}

func referencePage(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString("# Commands of stencilctl\n\n" +
		"The help of each command, and the flags side by side. [stencilctl](../stencilctl.md) explains the commands. " +
		"`go test ./cmd/stencilctl -run TestTheReference -update` writes this page.\n\n" +
		"## Flags\n\nFlags that several commands have. Those of the vocabulary in the test have one name and one meaning in all of them. " +
		"Flags of one command only are in its help; `stencilctl options` lists those that select the cluster and the user.\n\n" +
		"| flag | value | commands |\n|---|---|---|\n")
	byName := map[string][]flagOf{}
	for _, flag := range ownFlags(root) {
		byName[flag.Name] = append(byName[flag.Name], flag)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		flags := byName[name]
		if len(flags) == 1 {
			continue
		}
		shown, types, commands := "`--"+name+"`", []string{}, []string{}
		for _, flag := range flags {
			if flag.Shorthand != "" && !strings.Contains(shown, ", ") {
				shown = "`-" + flag.Shorthand + "`, " + shown
			}
			types, commands = append(types, flag.Value.Type()), append(commands, flag.command)
		}
		slices.Sort(types)
		fmt.Fprintf(&page, "| %s | %s | %s |\n", shown, strings.Join(slices.Compact(types), ", "), strings.Join(commands, ", "))
	}
	each(root, func(command *cobra.Command) {
		var help strings.Builder
		command.InitDefaultHelpFlag()
		command.SetOut(&help)
		if err := command.Help(); err != nil {
			help.WriteString(err.Error())
		}
		fmt.Fprintf(&page, "\n## %s\n\n```text\n%s\n```\n", command.CommandPath(), strings.TrimRight(help.String(), "\n"))
	})
	return page.String()
}
