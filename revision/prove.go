package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/vmstencil/stencil/template/instancetype"
)

// probes are the numbers of CPUs for which the topology of a preference is compared.
var probes = []uint32{1, 2, 3, 4, 6, 8, 12, 16, 64}

// Prove returns an error unless data is a copy in the target version with the same content: the same spec, which KubeVirt's current types
// read without loss, and the same effective size. The size of s is derived from the frozen types of its version, that of data from KubeVirt's.
func (s *Stored) Prove(data []byte) error {
	after, err := Decode(data, s.Family)
	if err != nil {
		return err
	}
	if after.SpecRevision || after.Version != Target {
		return fmt.Errorf("it has the version %s", after.Version)
	}
	same, err := equalJSON(s.spec, after.spec)
	if err != nil {
		return err
	}
	if !same {
		return errors.New("the spec differs")
	}
	if after.sizing != s.sizing {
		return fmt.Errorf("the size differs: %+v before, %+v after", s.sizing, after.sizing)
	}
	return s.proveEffective(after.spec)
}

func (s *Stored) proveEffective(spec json.RawMessage) error {
	var typed any = &instancetypev1beta1.VirtualMachinePreferenceSpec{}
	if s.Family == Instancetype {
		typed = &instancetypev1beta1.VirtualMachineInstancetypeSpec{}
	}
	if strictErrs, err := kjson.UnmarshalStrict(spec, typed); err != nil || len(strictErrs) > 0 {
		return fmt.Errorf("KubeVirt's type: %w", errors.Join(append(strictErrs, err)...))
	}
	var content map[string]any
	if err := json.Unmarshal(spec, &content); err != nil {
		return err
	}
	object := map[string]any{"spec": content}
	if s.Family == Instancetype {
		return s.proveSize(s.sizing.cpus, object, nil)
	}
	for _, cpus := range probes {
		size := map[string]any{"spec": map[string]any{"cpu": map[string]any{"guest": cpus}, "memory": map[string]any{"guest": "1Gi"}}}
		if err := s.proveSize(cpus, size, object); err != nil {
			return err
		}
	}
	return nil
}

// proveSize compares the CPUs that KubeVirt gives a guest with those that the frozen types say.
func (s *Stored) proveSize(cpus uint32, size, preference map[string]any) error {
	applied, err := instancetype.Apply(nil, size, preference)
	if err != nil {
		return err
	}
	domain := applied["spec"].(map[string]any)["domain"].(map[string]any)
	cpu := domain["cpu"].(map[string]any)
	got := [3]int64{cpu["sockets"].(int64), cpu["cores"].(int64), cpu["threads"].(int64)}
	want := [3]int64{int64(cpus), 1, 1}
	switch {
	case cpus == 1:
		want = [3]int64{1, 1, 1}
	case s.sizing.topology == "preferCores":
		want = [3]int64{1, int64(cpus), 1}
	case s.sizing.topology == "preferThreads":
		want = [3]int64{1, 1, int64(cpus)}
	case s.Version == Target && preference != nil:
		// The target's own topologies are not converted.
		return nil
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("sockets, cores and threads are %v before and %v after", want, got)
	}
	return nil
}

// equalJSON compares values, with numbers as they are written.
func equalJSON(a, b []byte) (bool, error) {
	var values [2]any
	for i, raw := range [][]byte{a, b} {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return false, err
		}
	}
	return reflect.DeepEqual(values[0], values[1]), nil
}
