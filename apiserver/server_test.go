package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
)

// get sends requests to a complete server without authentication and authorization.
func get(t *testing.T, options Options, paths map[string]string) map[string]string {
	t.Helper()
	scheme, codecs, err := Codecs()
	if err != nil {
		t.Fatal(err)
	}
	settings := genericapiserver.NewConfig(codecs)
	namer := openapinamer.NewDefinitionNamer(scheme)
	settings.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(Definitions, namer)
	settings.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(Definitions, namer)
	settings.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	settings.LoopbackClientConfig = &rest.Config{}
	settings.ExternalAddress = "localhost:8443"
	settings.BuildHandlerChainFunc = func(handler http.Handler, _ *genericapiserver.Config) http.Handler { return handler }
	server, err := settings.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	if err := Install(server, options); err != nil {
		t.Fatal(err)
	}
	prepared := server.PrepareRun()
	answers := map[string]string{}
	for path, accept := range paths {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.Header.Set("Accept", accept)
		recorded := httptest.NewRecorder()
		prepared.Handler.ServeHTTP(recorded, request)
		if recorded.Code != http.StatusOK {
			t.Errorf("GET %s: %d %s", path, recorded.Code, recorded.Body)
		}
		answers[path] = recorded.Body.String()
	}
	return answers
}

func TestTheServerDescribesItself(t *testing.T) {
	const root = "/apis/subresources.template.kubevirt.io"
	answers := get(t, Options{Templates: fakeTemplates{}, Defaults: &Defaults{}}, map[string]string{
		"/apis":                            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		root:                               "application/json",
		root + "/v1alpha1":                 "application/json",
		root + "/v1beta1":                  "application/json",
		"/openapi/v3" + root + "/v1alpha1": "application/json",
		"/openapi/v3" + root + "/v1beta1":  "application/json",
		"/openapi/v2":                      "application/json",
	})
	for path, answer := range answers {
		if !json.Valid([]byte(answer)) {
			t.Errorf("GET %s is no JSON: %s", path, answer)
		}
	}
	for path, wants := range map[string][]string{
		// A parent without a kind, which clients pass over.
		"/apis": {`{"resource":"virtualmachinetemplates","responseKind":{"group":"","version":"","kind":""},`, `"subresource":"process"`, `"subresource":"create"`, `"resource":"processedtemplates"`,
			`{"resource":"defaults","responseKind":{"group":"kubevirt.io","version":"v1","kind":"VirtualMachine"},"scope":"Namespaced","singularResource":"default","verbs":["create"]}`},
		root:                               {`"preferredVersion":{"groupVersion":"subresources.template.kubevirt.io/v1beta1"`},
		root + "/v1alpha1":                 {`"name":"virtualmachinetemplates/process"`, `"name":"virtualmachinetemplates/create"`, `"name":"processedtemplates"`, `"name":"defaults","singularName":"default","namespaced":true,"group":"kubevirt.io","version":"v1","kind":"VirtualMachine"`},
		root + "/v1beta1":                  {`"name":"virtualmachinetemplates/process"`, `"name":"virtualmachinetemplates/create"`, `"name":"processedtemplates"`},
		"/openapi/v3" + root + "/v1alpha1": {"virtualmachinetemplates/{name}/process", "targetNamespace"},
		"/openapi/v3" + root + "/v1beta1":  {"virtualmachinetemplates/{name}/create", "targetNamespace", "processedtemplates", "namespaces/{namespace}/defaults", "kubevirt.io~1api~1core~1v1.VirtualMachine"},
		"/openapi/v2":                      {"v1alpha1/namespaces/{namespace}/virtualmachinetemplates/{name}/process", "v1beta1/namespaces/{namespace}/processedtemplates"},
	} {
		for _, want := range wants {
			if !strings.Contains(answers[path], want) {
				t.Errorf("GET %s does not say %s:\n%s", path, want, answers[path])
			}
		}
	}
	for _, version := range []string{"/v1alpha1", "/v1beta1"} {
		if strings.Contains(answers[root+version], `"name":"virtualmachinetemplates"`) {
			t.Errorf("the parent is listed: %s", answers[root+version])
		}
	}
}

func TestDefaultsAreNotListedWhereTheyAreNotFilledIn(t *testing.T) {
	const root = "/apis/subresources.template.kubevirt.io/v1beta1"
	for path, answer := range get(t, Options{Templates: fakeTemplates{}}, map[string]string{
		"/apis": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", root: "application/json",
	}) {
		if strings.Contains(answer, `"defaults"`) || !strings.Contains(answer, `"processedtemplates"`) {
			t.Errorf("GET %s: %s", path, answer)
		}
	}
}
