package goldenimage_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// state of an image after the check of its source and before the first write.
func state(change func(*goldenimage.State)) goldenimage.State {
	image := &v1alpha1.GoldenImage{ObjectMeta: metav1.ObjectMeta{Namespace: "golden", Name: "fedora", UID: "of-fedora", Generation: 1}}
	image.Spec.Source.Registry = &v1alpha1.GoldenImageRegistry{URL: "quay.io/containerdisks/fedora"}
	s := goldenimage.State{
		Image: image, Now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Check: &goldenimage.Check{Found: []goldenimage.Found{{Digest: digest, Tag: "41"}}},
		Sources: map[string]*goldenimage.DataSource{}, Crons: map[string]*goldenimage.Cron{}, Provided: map[string]bool{},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// written are the actions of a plan, as VERB RESOURCE NAME.
func written(plan goldenimage.Plan) string {
	var actions []string
	for _, action := range plan.Actions {
		actions = append(actions, strings.Join([]string{string(action.Verb), action.Resource.Resource, action.Name}, " "))
	}
	return strings.Join(actions, ", ")
}

func condition(plan goldenimage.Plan, kind string) string {
	for _, one := range plan.Status.Conditions {
		if one.Type == kind {
			return string(one.Status) + " " + one.Reason + ": " + one.Message
		}
	}
	return ""
}

// TestAdoption is the matrix of adoption: who has made the DataSource, its labels, whether it is ready, and spec.adopt.
func TestAdoption(t *testing.T) {
	const (
		taken    = "apply datasources fedora, create dataimportcrons fedora"
		provided = "Unknown Provided: "
	)
	made := func(ready bool, labels, annotations map[string]string) func(*goldenimage.State) {
		return func(s *goldenimage.State) {
			s.Sources["fedora"] = &goldenimage.DataSource{
				Ready: ready, Labels: labels, Annotations: annotations,
				Source: map[string]any{"pvc": map[string]any{"namespace": "golden", "name": "by-hand"}},
			}
		}
	}
	of := func(image string) map[string]string {
		return map[string]string{v1alpha1.AnnotationGoldenImage: image}
	}
	moved := map[string]string{goldenimage.LabelDataImportCron: "hco"}
	cron := func(s *goldenimage.State) {
		made(true, moved, nil)(s)
		s.Crons["hco"] = &goldenimage.Cron{}
	}
	type result struct{ writes, upToDate string }
	for name, tc := range map[string]struct {
		state                     func(*goldenimage.State)
		never, ifNotReady, always result
	}{
		"nobody": {
			nil,
			result{"create datasources fedora, create dataimportcrons fedora", "False Importing"},
			result{"create datasources fedora, create dataimportcrons fedora", "False Importing"},
			result{"create datasources fedora, create dataimportcrons fedora", "False Importing"},
		},
		"a person, ready": {
			made(true, nil, nil),
			result{"", provided + "DataSource fedora exists: to take it over, set spec.adopt to IfNotReady or Always"},
			result{"", provided + "DataSource fedora exists and is ready: to take it over, set spec.adopt to Always"},
			result{taken, "False Importing"},
		},
		"a person, not ready": {
			made(false, nil, nil),
			result{"", provided + "DataSource fedora exists: to take it over, set spec.adopt to IfNotReady or Always"},
			result{taken, "False Importing"},
			result{taken, "False Importing"},
		},
		"a DataImportCron that is gone": {
			made(true, moved, nil),
			result{"", provided}, result{"", provided}, result{taken, "False Importing"},
		},
		"another DataImportCron": {
			cron,
			result{"", "False Conflict: DataSource fedora is moved by DataImportCron hco"},
			result{"", "False Conflict"}, result{"", "False Conflict"},
		},
		"another operator": {
			made(false, nil, map[string]string{"operator-sdk/primary-resource": "kubevirt-hyperconverged/ssp"}),
			result{"", "False Conflict: DataSource fedora belongs to another operator: it has the annotation operator-sdk/primary-resource"},
			result{"", "False Conflict"}, result{"", "False Conflict"},
		},
		"another GoldenImage": {
			made(false, nil, of("centos")),
			result{"", "False Conflict: DataSource fedora belongs to GoldenImage centos"},
			result{"", "False Conflict"}, result{"", "False Conflict"},
		},
		// CDI copies labels of volumes to DataSources.
		"a person, with a copied label": {
			made(true, map[string]string{v1alpha1.LabelGoldenImage: "fedora"}, nil),
			result{"", provided}, result{"", provided}, result{taken, "False Importing"},
		},
		"this GoldenImage": {
			made(false, map[string]string{v1alpha1.LabelGoldenImage: "fedora"}, of("fedora")),
			result{taken, "False Importing"}, result{taken, "False Importing"}, result{taken, "False Importing"},
		},
		"nobody, but a person has made a claim of the name": {
			func(s *goldenimage.State) { s.Provided["fedora"] = true },
			result{"create datasources fedora", provided + "PersistentVolumeClaim fedora exists, so that DataSource fedora stands for it"},
			result{"create datasources fedora", provided},
			result{"create datasources fedora, create dataimportcrons fedora", "False Importing"},
		},
	} {
		for adopt, want := range map[v1alpha1.GoldenImageAdoption]result{v1alpha1.AdoptNever: tc.never, v1alpha1.AdoptIfNotReady: tc.ifNotReady, v1alpha1.AdoptAlways: tc.always} {
			t.Run(name+"/"+string(adopt), func(t *testing.T) {
				plan := goldenimage.Decide(state(func(s *goldenimage.State) {
					s.Image.Spec.Adopt = adopt
					if tc.state != nil {
						tc.state(s)
					}
				}))
				if got := written(plan); got != want.writes {
					t.Errorf("wrote %s, want %s", got, want.writes)
				}
				if got := condition(plan, v1alpha1.ConditionUpToDate); !strings.HasPrefix(got, want.upToDate) {
					t.Errorf("UpToDate is %s, want %s", got, want.upToDate)
				}
				if conflict := strings.HasPrefix(want.upToDate, "False Conflict"); strings.HasPrefix(condition(plan, v1alpha1.ConditionConflict), "True") != conflict {
					t.Errorf("Conflict is %s", condition(plan, v1alpha1.ConditionConflict))
				}
			})
		}
	}
}

// A DataSource that was taken over belongs to its other owners first, and stands for what it stood for when the GoldenImage is gone.
func TestAnAdoptedDataSourceIsGivenBack(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Operator", Name: "it", UID: "of-another"}
	for name, tc := range map[string]struct {
		owners []metav1.OwnerReference
		want   string
	}{
		"with an owner":    {[]metav1.OwnerReference{owner}, `[{"apiVersion":"stencil.kubevirt.io/v1alpha1","blockOwnerDeletion":false,"controller":false,"kind":"GoldenImage","name":"fedora","uid":"of-fedora"}]`},
		"without an owner": {nil, "null"},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *goldenimage.State) {
				s.Image.Spec.Adopt = v1alpha1.AdoptAlways
				s.Sources["fedora"] = &goldenimage.DataSource{Owners: tc.owners, Source: map[string]any{"snapshot": map[string]any{"namespace": "golden", "name": "by-hand"}}}
			})
			plan := goldenimage.Decide(s)
			metadata := plan.Actions[0].Object["metadata"].(map[string]any)
			if got, _ := json.Marshal(metadata["ownerReferences"]); string(got) != tc.want {
				t.Errorf("owners %s, want %s", got, tc.want)
			}
			previous, _ := metadata["annotations"].(map[string]any)[v1alpha1.AnnotationPreviousSource].(string)

			now := metav1.Now()
			s.Image.DeletionTimestamp = &now
			s.Sources["fedora"] = &goldenimage.DataSource{
				Owners: append(slices.Clone(tc.owners), metav1.OwnerReference{UID: "of-fedora"}), Source: map[string]any{"pvc": map[string]any{"name": "fedora-0123456789ab"}},
				Annotations: map[string]string{v1alpha1.AnnotationGoldenImage: "fedora", v1alpha1.AnnotationPreviousSource: previous},
			}
			s.Image.Spec.Retention = v1alpha1.RetentionDelete
			plan = goldenimage.Decide(s)
			if got := written(plan); got != "patch datasources fedora" || !plan.Finalizer {
				t.Fatalf("wrote %s, finalizer %v", got, plan.Finalizer)
			}
			if got, _ := json.Marshal(plan.Actions[0].Object["spec"]); string(got) != `{"source":{"pvc":null,"snapshot":{"name":"by-hand","namespace":"golden"}}}` {
				t.Errorf("restored %s", got)
			}
			if got := plan.Actions[0].Object["metadata"].(map[string]any)["ownerReferences"].([]any); len(got) != len(tc.owners) {
				t.Errorf("owners %v", got)
			}
			delete(s.Sources["fedora"].Annotations, v1alpha1.AnnotationGoldenImage)
			if plan = goldenimage.Decide(s); plan.Finalizer || len(plan.Actions) > 0 {
				t.Errorf("wrote %s, finalizer %v", written(plan), plan.Finalizer)
			}
		})
	}
}
