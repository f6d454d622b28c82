package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// report is what the command prints.
type report struct {
	Operations []operation `json:"operations,omitempty"`
	Resources  []resource  `json:"resources"`
}

// resource is what Argo CD shows of one object.
type resource struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Comparisons are by the way in which the object is compared.
	Comparisons map[string]comparison `json:"comparisons,omitempty"`
	Health      string                `json:"health,omitempty"`
	Message     string                `json:"message,omitempty"`
}

// comparison is the sync status of an object.
type comparison struct {
	Sync string `json:"sync"`
	// Difference is a merge patch from the stored object to the desired one.
	Difference json.RawMessage `json:"difference,omitempty"`
}

func describe(object *unstructured.Unstructured) resource {
	return resource{Kind: object.GetKind(), Name: object.GetName()}
}

// evaluate adds the health of a stored object. For kinds that neither Argo CD nor a script supports there is none.
func (r *resource) evaluate(object *unstructured.Unstructured, scripts scripts) error {
	status, err := health.GetResourceHealth(object, scripts)
	if err != nil {
		return fmt.Errorf("evaluating the health: %w", err)
	}
	if status != nil {
		r.Health, r.Message = string(status.Status), status.Message
	}
	return nil
}

// scripts are health scripts in Lua, by the keys that argocd-cm has for them.
type scripts map[string]string

const scriptPrefix = "resource.customizations.health."

// read adds the scripts of a file.
func (s scripts) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading scripts: %w", err)
	}
	var configuration struct {
		Data scripts `json:"data"`
	}
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return fmt.Errorf("decoding scripts: %w", err)
	}
	maps.Copy(s, configuration.Data)
	return nil
}

// GetResourceHealth runs the script of a kind with the libraries that Argo CD permits by default.
func (s scripts) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	kind := object.GroupVersionKind()
	script, found := s[scriptPrefix+strings.TrimPrefix(kind.Group+"_"+kind.Kind, "_")]
	if !found {
		return nil, nil
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, library := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library), Protect: true}, lua.LString(name)); err != nil {
			return nil, fmt.Errorf("loading the library %q: %w", name, err)
		}
	}
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoString(script); err != nil {
		return nil, fmt.Errorf("running the script of %s: %w", kind.Kind, err)
	}
	table, is := state.Get(-1).(*lua.LTable)
	if !is {
		return nil, fmt.Errorf("the script of %s returns %s", kind.Kind, state.Get(-1))
	}
	return &health.HealthStatus{Status: health.HealthStatusCode(table.RawGetString("status").String()), Message: table.RawGetString("message").String()}, nil
}

// value converts a decoded JSON value.
func value(state *lua.LState, from any) lua.LValue {
	switch v := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, each := range v {
			table.RawSetString(key, value(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range v {
			table.Append(value(state, each))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}
