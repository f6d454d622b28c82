package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Formats of output. All except Table are stable: fields are added, but neither renamed nor
// removed.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
	JUnit = "junit"
	Name  = "name"
	SARIF = "sarif"
)

// Format is the value of a flag that takes one of several formats.
type Format struct {
	value   string
	allowed []string
}

// NewFormat returns a flag value that accepts the given formats. The first one is the default.
func NewFormat(allowed ...string) *Format {
	return &Format{value: allowed[0], allowed: allowed}
}

// Register adds the flag, with its completion.
func (f *Format) Register(command *cobra.Command, name, shorthand string) {
	command.Flags().VarP(f, name, shorthand, "format of the output: "+strings.Join(f.allowed, ", "))
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(f.allowed, cobra.ShellCompDirectiveNoFileComp))
}

// Is reports whether a format was chosen.
func (f *Format) Is(format string) bool { return f.value == format }

// String implements pflag.Value.
func (f *Format) String() string { return f.value }

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	if !slices.Contains(f.allowed, value) {
		return fmt.Errorf("must be one of %s", strings.Join(f.allowed, ", "))
	}
	f.value = value
	return nil
}

// Type implements pflag.Value.
func (f *Format) Type() string { return "FORMAT" }

// Write writes a value as JSON or YAML.
func (f *Format) Write(w io.Writer, value any) error {
	var raw []byte
	var err error
	if f.Is(YAML) {
		raw, err = yaml.Marshal(value)
	} else {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(value)
		raw = out.Bytes()
	}
	if err == nil {
		_, err = w.Write(raw)
	}
	if err != nil {
		return Internal(fmt.Errorf("writing the output: %w", err))
	}
	return nil
}
