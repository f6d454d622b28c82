// Command kubectls runs kubectl's commands one after another in one process. The code that it calls is that of cmd/kubectl, whose process uses most of its
// time for starting: tests run kubectl thousands of times.
//
// Each line of standard input is a request in JSON. After each command, its exit code follows as a line on standard output. A command that ends the
// process, as `kubectl auth can-i` does when the answer is no, ends this one with its exit code.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
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
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
	return 0
}
