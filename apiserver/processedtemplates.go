package apiserver

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/template/v1beta1"
	templatecache "github.com/vmstencil/stencil/cache/templates"
)

// processSent renders a template from the body, for editors and pipelines. Its parameters have no user-specified values.
func (h *handler) processSent(request *http.Request, path map[string]string, raw []byte) (processed, error) {
	sent, err := decodeTemplate(raw, path[namespace])
	if err != nil {
		return processed{}, err
	}
	found := templatecache.Compile(sent)
	made, err := render(found, nil)
	if err != nil {
		return processed{}, err
	}
	warned, err := h.evaluateRules(request.Context(), found, made, sent.Namespace)
	if err != nil {
		return processed{}, err
	}
	answer := answerOf(found, made)
	answer.warnings = append(made.compiled.Warnings(), warned...)
	answer.code = http.StatusCreated
	return answer, nil
}

func decodeTemplate(raw []byte, namespace string) (*v1beta1.VirtualMachineTemplate, error) {
	bad := func(format string, arguments ...any) error {
		return apierrors.NewBadRequest("the body is no VirtualMachineTemplate: " + fmt.Sprintf(format, arguments...))
	}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, bad("it is neither JSON nor YAML")
	}
	sent := &v1beta1.VirtualMachineTemplate{}
	unknown, err := strictjson.UnmarshalStrict(asJSON, sent)
	if err != nil {
		return nil, bad("%v", err)
	}
	if len(unknown) > 0 {
		return nil, bad("%v", unknown[0])
	}
	group, err := schema.ParseGroupVersion(sent.APIVersion)
	if err != nil || group.Group != v1beta1.GroupVersion.Group || !slices.Contains([]string{"v1alpha1", "v1beta1"}, group.Version) || sent.Kind != "VirtualMachineTemplate" {
		return nil, bad("apiVersion must be %s and kind VirtualMachineTemplate", v1beta1.GroupVersion)
	}
	if sent.Namespace != "" && sent.Namespace != namespace {
		return nil, bad("it names namespace %q and is sent to %q", sent.Namespace, namespace)
	}
	sent.Namespace = namespace
	return sent, nil
}
