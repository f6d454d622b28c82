// Command kubectls runs kubectl's commands one after another in one process. The code that it calls is that of cmd/kubectl, whose process uses most of its
// time for starting: tests run kubectl thousands of times.
//
// Each line of standard input is a request in JSON. After each command, its exit code follows as a line on standard output. A command that ends the
// process, as `kubectl auth can-i` does when the answer is no, ends this one with its exit code.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"

	// As in cmd/kubectl.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

// request is one command. The last three are paths of files that exist.
type request struct {
	Arguments             []string
	Folder, Kubeconfig    string
	Stdin, Stdout, Stderr string
}

// exit is what ends a command instead of os.Exit.
type exit int

func main() {
	requests, answers := bufio.NewReader(os.Stdin), os.Stdout
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		fmt.Fprintln(answers, r.run())
	}
}

// run runs the command and returns its exit code.
func (r request) run() (code int) {
	for path, stream := range map[string]struct {
		of    **os.File
		flags int
	}{r.Stdin: {&os.Stdin, os.O_RDONLY}, r.Stdout: {&os.Stdout, os.O_WRONLY}, r.Stderr: {&os.Stderr, os.O_WRONLY}} {
		file, err := os.OpenFile(path, stream.flags, 0)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		*stream.of = file
	}
	if err := os.Setenv("KUBECONFIG", r.Kubeconfig); err != nil {
		panic(err)
	}
	if err := os.Chdir(r.Folder); err != nil {
		panic(err)
	}
	util.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(os.Stderr, strings.TrimSuffix(message, "\n"))
		}
		panic(exit(code))
	})
	defer func() {
		if ended := recover(); ended != nil {
			last, is := ended.(exit)
			if !is {
				panic(ended)
			}
			code = int(last)
		}
	}()
	// As in cmd/kubectl.
	os.Args = append([]string{"kubectl"}, r.Arguments...)
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(command(r.Arguments)); err != nil {
		util.CheckErr(err)
	}
	return 0
}

// command returns kubectl's command as cmd.NewDefaultKubectlCommand does. Commands that write get OpenAPI documents with only what they read, in a cache
// of their own: decoding the rest takes most of the time of a kubectl that creates an object.
func command(arguments []string) *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams)
	writes := slices.IndexFunc(arguments, func(argument string) bool { return slices.Contains([]string{"create", "replace", "apply"}, argument) })
	if writes >= 0 {
		verb := arguments[writes]
		*flags.CacheDir += "-" + verb
		flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return brief{next: next, patches: verb == "apply"} })
			return config
		})
	}
	return cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes), Arguments: os.Args, ConfigFlags: flags, IOStreams: streams,
	})
}

// brief leaves of OpenAPI documents the operations PATCH: by their parameters kubectl decides whether the API server validates fields.
type brief struct {
	next http.RoundTripper
	// patches says that kubectl computes patches itself. It reads the schemas of groups with strategic merge patches, which custom resources do not have;
	// without a document of version 2, which says the same as that of version 3, it computes a merge patch for all others.
	patches bool
}

const (
	documents      = "/openapi/v3/"
	oldDocument    = "/openapi/v2"
	strategicMerge = "application/strategic-merge-patch+json"
)

func (b brief) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.patches && request.URL.Path == oldDocument {
		return &http.Response{
			Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: request,
		}, nil
	}
	response, err := b.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(request.URL.Path, documents) {
		return response, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", request.URL.Path, err)
	}
	if text, err = b.reduce(text); err != nil {
		return nil, fmt.Errorf("reducing %s: %w", request.URL.Path, err)
	}
	response.Header.Del("Content-Length")
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return response, nil
}

// reduce returns the document without what kubectl does not read of it.
func (b brief) reduce(text []byte) ([]byte, error) {
	var document struct {
		OpenAPI json.RawMessage `json:"openapi"`
		Info    json.RawMessage `json:"info"`
		Paths   map[string]*struct {
			Patch *struct {
				Parameters json.RawMessage `json:"parameters,omitempty"`
				Body       json.RawMessage `json:"requestBody,omitempty"`
				Kind       json.RawMessage `json:"x-kubernetes-group-version-kind,omitempty"`
			} `json:"patch,omitempty"`
		} `json:"paths"`
		Components json.RawMessage `json:"components,omitempty"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	strategic := false
	for path, operations := range document.Paths {
		if operations.Patch == nil {
			delete(document.Paths, path)
			continue
		}
		strategic = strategic || bytes.Contains(operations.Patch.Body, []byte(strategicMerge))
	}
	if !b.patches || !strategic {
		document.Components = nil
	}
	return json.Marshal(document)
}
