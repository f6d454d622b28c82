package serving

import (
	"net/http/httptest"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	cases := map[string]struct {
		query string
		want  time.Duration
	}{
		"a long timeout keeps half a second back":                 {"?timeout=10s", 9500 * time.Millisecond},
		"a short one keeps a tenth back":                          {"?timeout=1s", 900 * time.Millisecond},
		"the longest that exists is the longest that counts":      {"?timeout=1h", 29500 * time.Millisecond},
		"without a timeout it is the API server's default":        {"", 9500 * time.Millisecond},
		"a timeout that is none counts as missing":                {"?timeout=soon", 9500 * time.Millisecond},
		"so does one that is over before it begins":               {"?timeout=-1s", 9500 * time.Millisecond},
		"and a timeout of zero, which means none in other places": {"?timeout=0s", 9500 * time.Millisecond},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest("POST", "/webhook"+tc.query, nil)
			if got := budget(request); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}
