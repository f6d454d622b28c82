package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/emicklei/go-restful/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/yaml"

	"github.com/vmstencil/stencil/api/subresources/v1beta1"
	"github.com/vmstencil/stencil/apiserver/body"
	"github.com/vmstencil/stencil/template"
)

// maximumBody is the largest body that is read, in bytes.
const maximumBody = 1 << 20

// processed is a ProcessedVirtualMachineTemplate. The VirtualMachine and the other objects are passed on as they were rendered or stored: the Go type
// of a VirtualMachine would drop unknown fields, and add an empty status.
type processed struct {
	Kind           string                 `json:"kind"`
	APIVersion     string                 `json:"apiVersion"`
	TemplateRef    corev1.ObjectReference `json:"templateRef,omitzero"`
	VirtualMachine json.RawMessage        `json:"virtualMachine"`
	Objects        json.RawMessage        `json:"objects,omitempty"`
	Message        string                 `json:"message,omitempty"`
	Decisions      []v1beta1.Decision     `json:"decisions,omitempty"`

	warnings []string
	code     int
}

// reply is a successful response.
type reply struct {
	// body is encoded as JSON, unless it is encoded already.
	body     any
	warnings []string
	code     int
}

// processing makes a route of a function that receives a body and returns a ProcessedVirtualMachineTemplate.
func (h *handler) processing(serve func(request *http.Request, parameters map[string]string, raw []byte) (processed, error)) restful.RouteFunction {
	return h.answering(func(request *http.Request, parameters map[string]string, raw []byte) (reply, error) {
		done, err := serve(request, parameters, raw)
		done.Kind, done.APIVersion = "ProcessedVirtualMachineTemplate", h.version.String()
		return reply{body: done, warnings: done.warnings, code: done.code}, err
	})
}

// answering makes a route of a function that receives a body and returns the response.
func (h *handler) answering(serve func(request *http.Request, parameters map[string]string, raw []byte) (reply, error)) restful.RouteFunction {
	return func(request *restful.Request, response *restful.Response) {
		h.answer(response.ResponseWriter, request.Request, func() (reply, error) {
			raw, err := readBody(response.ResponseWriter, request.Request)
			if err != nil {
				return reply{}, err
			}
			return serve(request.Request, request.PathParameters(), raw)
		})
	}
}

func readBody(w http.ResponseWriter, request *http.Request) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maximumBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the body may have %d MiB at most", maximumBody>>20))
	case err != nil:
		return nil, apierrors.NewBadRequest("the body could not be read")
	}
	return raw, nil
}

func (h *handler) answer(w http.ResponseWriter, request *http.Request, serve func() (reply, error)) {
	done, err := serve()
	if err != nil {
		responsewriters.ErrorNegotiated(err, h.serializer, h.version, w, request)
		return
	}
	for _, text := range done.warnings {
		warning.AddWarning(request.Context(), "", text)
	}
	var raw []byte
	if body, is := done.body.(encoded); is {
		raw = body
	} else {
		raw, err = json.Marshal(done.body)
	}
	contentType := runtime.ContentTypeJSON
	if err == nil && prefersYAML(request.Header.Get("Accept")) {
		contentType = runtime.ContentTypeYAML
		raw, err = yaml.JSONToYAML(raw)
	}
	if err != nil {
		responsewriters.ErrorNegotiated(apierrors.NewInternalError(fmt.Errorf("encoding the answer: %w", err)), h.serializer, h.version, w, request)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(done.code)
	// A client that has disconnected needs no response.
	_, _ = w.Write(raw)
}

// prefersYAML reports whether a client prefers YAML to JSON. The router has checked that the client accepts one of them.
func prefersYAML(accept string) bool {
	best := map[string]float64{}
	for part := range strings.SplitSeq(accept, ",") {
		mediaType, parameters, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			quality = 1
		}
		best[mediaType] = max(best[mediaType], quality)
	}
	return best[runtime.ContentTypeYAML] > max(best[runtime.ContentTypeJSON], best["*/*"], best["application/*"])
}

// templateKind is the kind in errors about a template.
var (
	templateKind     = schema.GroupKind{Group: "template.kubevirt.io", Kind: "VirtualMachineTemplate"}
	templateResource = schema.GroupResource{Group: "template.kubevirt.io", Resource: templates}
)

// statusOf converts errors of other packages to API statuses.
func statusOf(name string, err error) error {
	var malformed *body.Malformed
	var invalid *template.InvalidError
	switch {
	case errors.As(err, &malformed):
		return apierrors.NewBadRequest(malformed.Error())
	case errors.As(err, &invalid):
		return apierrors.NewInvalid(templateKind, name, invalid.Causes)
	default:
		return apierrors.NewInternalError(err)
	}
}
