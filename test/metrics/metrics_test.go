package metrics

import "testing"

const text = `# HELP calls_total Calls.
# TYPE calls_total counter
calls_total{operation="CREATE",webhook="a"} 2
calls_total{operation="CREATE",webhook="b"} 3e+00
calls_total{operation="UPDATE",webhook="a"} 10
calls_total_other{operation="CREATE",webhook="a"} 100
broken{operation="CREATE"} many
`

func TestSum(t *testing.T) {
	for name, tc := range map[string]struct {
		metric  string
		labels  []string
		want    float64
		wantErr bool
	}{
		"all series":                   {metric: "calls_total", want: 15},
		"the series with a label":      {metric: "calls_total", labels: []string{`operation="CREATE"`}, want: 5},
		"the series with two labels":   {metric: "calls_total", labels: []string{`webhook="b"`, `operation="CREATE"`}, want: 3},
		"no series":                    {metric: "calls_total", labels: []string{`webhook="c"`}},
		"a metric that does not exist": {metric: "calls"},
		"a value that is no number":    {metric: "broken", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Sum(text, tc.metric, tc.labels...)
			if got != tc.want || (err != nil) != tc.wantErr {
				t.Errorf("got %v, %v; want %v, error %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}

func TestValue(t *testing.T) {
	const text = "up 1\nup_total 7\nvms{result=\"violating\"} 3e+00\nbroken many\n"
	for series, want := range map[string]float64{"up": 1, `vms{result="violating"}`: 3, "vms": 0, "broken": 0, "missing": 0} {
		if got := Value(text, series); got != want {
			t.Errorf("%s: got %v, want %v", series, got, want)
		}
	}
}
