package machine

import (
	"runtime"
	"testing"
	"time"
)

func TestParseBusy(t *testing.T) {
	for name, tc := range map[string]struct {
		line    string
		want    time.Duration
		wantErr bool
	}{
		"idle and waiting for input is not busy": {line: "cpu  100 10 50 9000 700 1 2 3 0 0", want: 1660 * time.Millisecond},
		"another line":                           {line: "intr 1 2 3 4 5 6 7 8 9", wantErr: true},
		"a line that is cut off":                 {line: "cpu 1 2 3", wantErr: true},
		"a field that is no number":              {line: "cpu 1 2 x 4 5 6 7 8 9", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseBusy(tc.line)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v, want one: %v", err, tc.wantErr)
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOwnWorkIsNotOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // There is no /proc to read.
	}
	others, err := WatchOthers()
	if err != nil {
		t.Fatal(err)
	}
	_, before, err := usage()
	if err != nil {
		t.Fatal(err)
	}
	own := before
	for deadline := time.Now().Add(10 * time.Second); own-before < 50*time.Millisecond; {
		if time.Now().After(deadline) {
			t.Fatal("this process gets no processor time")
		}
		if _, own, err = usage(); err != nil {
			t.Fatal(err)
		}
	}
	share, err := others.Share()
	if err != nil {
		t.Fatal(err)
	}
	if share < 0 || share > 1 {
		t.Errorf("others used %v of the machine: want a share", share)
	}
}
