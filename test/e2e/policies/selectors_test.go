package policies_test

import "testing"

// Namespaces that an approval selects, for all forms of its selector.
func TestCoverage(t *testing.T) {
	expressions := func(requirements ...any) object { return object{"matchExpressions": requirements} }
	requires := func(key, operator string, values ...any) object {
		requirement := object{"key": key, "operator": operator}
		if len(values) > 0 {
			requirement["values"] = values
		}
		return requirement
	}
	cases := map[string]struct {
		selector any // nil for none
		// covers and not are labels of namespaces, each such as "env=prod".
		covers, not [][]string
	}{
		"no selector": {
			not: [][]string{{}, {"env=prod"}},
		},
		"an empty selector covers everything": {
			selector: object{}, covers: [][]string{{}, {"env=prod"}},
		},
		"a selector of nothing covers everything": {
			selector: object{"matchLabels": object{}, "matchExpressions": []any{}}, covers: [][]string{{}, {"env=prod"}},
		},
		"labels": {
			selector: object{"matchLabels": object{"env": "prod", "team": "a"}},
			covers:   [][]string{{"env=prod", "team=a"}, {"env=prod", "team=a", "x=y"}},
			not:      [][]string{{}, {"env=prod"}, {"env=prod", "team=b"}, {"env=Prod", "team=a"}},
		},
		"a label without a value": {
			selector: object{"matchLabels": object{"env": ""}},
			covers:   [][]string{{"env="}}, not: [][]string{{}, {"env=prod"}},
		},
		"In": {
			selector: expressions(requires("env", "In", "prod", "stage")),
			covers:   [][]string{{"env=prod"}, {"env=stage", "x=y"}}, not: [][]string{{}, {"env=dev"}, {"env="}, {"x=prod"}},
		},
		"NotIn, which holds without the label": {
			selector: expressions(requires("env", "NotIn", "dev", "test")),
			covers:   [][]string{{}, {"env=prod"}, {"env="}}, not: [][]string{{"env=dev"}, {"env=test"}},
		},
		"Exists": {
			selector: expressions(requires("env", "Exists")),
			covers:   [][]string{{"env=prod"}, {"env="}}, not: [][]string{{}, {"x=y"}},
		},
		"DoesNotExist": {
			selector: expressions(requires("env", "DoesNotExist")),
			covers:   [][]string{{}, {"x=y"}}, not: [][]string{{"env=prod"}, {"env="}},
		},
		"all requirements must hold": {
			selector: object{
				"matchLabels":      object{"tier": "gold"},
				"matchExpressions": []any{requires("env", "In", "prod"), requires("legacy", "DoesNotExist"), requires("zone", "NotIn", "x")},
			},
			covers: [][]string{{"tier=gold", "env=prod"}, {"tier=gold", "env=prod", "zone=y"}},
			not: [][]string{
				{"env=prod"}, {"tier=gold"}, {"tier=gold", "env=prod", "legacy=true"}, {"tier=gold", "env=prod", "zone=x"}, {"tier=tin", "env=prod"},
			},
		},
		"a key with a prefix": {
			selector: object{"matchLabels": object{"example.com/cost-centre": "42"}},
			covers:   [][]string{{"example.com/cost-centre=42"}}, not: [][]string{{"cost-centre=42"}},
		},
		"the name that Kubernetes puts on every namespace": {
			selector: expressions(requires("kubernetes.io/metadata.name", "In", "policies-none")),
			not:      [][]string{{}, {"name=policies-none"}},
		},
		"a label of Stencil's is a label like others": {
			selector: object{"matchLabels": object{"env": "prod"}},
			not:      [][]string{{"stencil.kubevirt.io/governed=true"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := object{}
			if tc.selector != nil {
				spec["namespaceSelector"] = tc.selector
			}
			approve(t, "selects", spec)
			for _, labels := range tc.covers {
				space := namespace(t, labels...)
				eventually(t, "the approval governs", func() string { return needsTemplate("selects").complaint(probe(t, space)) })
			}
			for _, labels := range tc.not {
				// The namespace was undecided a moment ago, and may have been closed.
				space := namespace(t, labels...)
				eventually(t, "the namespace is free", func() string { return denial{}.complaint(probe(t, space)) })
			}
		})
	}
}

// Namespaces of the cluster and of Stencil are never selected: the cluster has to work, and Stencil to be repairable.
func TestSomeNamespacesAreNeverCovered(t *testing.T) {
	approve(t, "everywhere", object{"namespaceSelector": object{}, "namespaces": []any{"stencil-system"}})
	eventually(t, "the approval governs", func() string { return needsTemplate("everywhere").complaint(probe(t, "default")) })
	for _, name := range []string{"kube-system", "kube-public", "kube-node-lease", "stencil-system"} {
		t.Run(name, func(t *testing.T) {
			denial{}.check(t, probe(t, name))
		})
	}
}

// A namespace is selected as soon as it has the labels, including labels that are added later. A user who changes them removes the label that was
// computed from the previous ones.
func TestCoverageFollowsLabels(t *testing.T) {
	space := namespace(t)
	approve(t, "follows", object{"namespaceSelector": object{"matchLabels": object{"env": "prod"}}})
	denial{}.check(t, probe(t, space))
	mustPass(t, acting(t, nil, "").label(namespaces, space, "env=prod", governedLabel+"-"))
	eventually(t, "the approval governs", func() string { return needsTemplate("follows").complaint(probe(t, space)) })
	mustPass(t, acting(t, nil, "").label(namespaces, space, "env-", governedLabel+"-"))
	eventually(t, "the namespace is free", func() string { return denial{}.complaint(probe(t, space)) })
}
