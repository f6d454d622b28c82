// Command engine applies manifests as Argo CD does, and prints what Argo CD shows of them: with its engine for GitOps, which is the library of its
// application controller. Its scripts of health come from a ConfigMap like argocd-cm.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// timeout limits a run. A sync waits for the health of each wave.
const timeout = 2 * time.Minute

type options struct {
	kubeconfig, namespace, application string
	scripts                            scripts
	sync, serverSideApply              bool
}

func main() {
	o := options{scripts: scripts{}}
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "of the user as whom Argo CD acts; without it only the health of the objects that are sent is printed")
	flag.StringVar(&o.namespace, "namespace", "", "the only one that is read and written")
	flag.StringVar(&o.application, "application", "application", "name of the application, whose objects Argo CD recognizes")
	flag.Func("health", "file with a ConfigMap of health scripts; may be repeated", o.scripts.read)
	flag.BoolVar(&o.sync, "sync", false, "apply the objects before they are compared")
	flag.BoolVar(&o.serverSideApply, "server-side-apply", false, "apply on the server")
	flag.Parse()
	if err := run(o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options, in io.Reader, out io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the manifests: %w", err)
	}
	objects, err := kube.SplitYAML(text)
	if err != nil {
		return fmt.Errorf("decoding the manifests: %w", err)
	}
	result := report{}
	if o.kubeconfig == "" {
		for _, object := range objects {
			each := describe(object)
			if err := each.evaluate(object, o.scripts); err != nil {
				return err
			}
			result.Resources = append(result.Resources, each)
		}
	} else if result, err = application(ctx, o, objects); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// application applies the objects of an application and compares them.
func application(ctx context.Context, o options, objects []*unstructured.Unstructured) (report, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return report{}, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for _, object := range objects {
		track(object, o.application, o.namespace)
	}
	a, err := open(config, o)
	if err != nil {
		return report{}, err
	}
	defer a.cache.Invalidate()
	if err := a.place(objects); err != nil {
		return report{}, err
	}
	var result report
	if o.sync {
		if result.Operations, err = a.sync(ctx, objects, o.serverSideApply); err != nil {
			return report{}, err
		}
	}
	result.Resources, err = a.compare(ctx, objects)
	return result, err
}

// quiet drops the engine's log. Its errors are returned.
func quiet() logr.Logger { return logr.Discard() }
