package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/vmstencil/stencil/defaulting"
	"github.com/vmstencil/stencil/defaulting/client"
)

// answering serves a response, and counts the requests.
func answering(t *testing.T, response string) (*client.CachingDefaulter, *clocktesting.FakePassiveClock, *atomic.Int64, func()) {
	t.Helper()
	asked := &atomic.Int64{}
	socket := filepath.Join(t.TempDir(), "s")
	stop := serve(t, socket, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, response)
	})
	clock := clocktesting.NewFakePassiveClock(time.Now())
	return client.NewCachingDefaulter(client.New(socket), clock), clock, asked, stop
}

func request(note string) *defaulting.Request {
	return &defaulting.Request{VM: json.RawMessage(fmt.Sprintf(`{"note":%q}`, note)), PatchOnly: true}
}

const made = `{"cache":"miss","set":[{"path":"spec.template.spec.domain.firmware.uuid","value":"the-uuid","source":"stencil"},{"path":"p","value":"the-uuid-of-another","source":"libvirt"},` +
	`{"path":"q","value":{"a":["b"]},"source":"kubevirt"}],"patch":[{"op":"add","path":"/spec/template/spec/domain/firmware","value":{}},` +
	`{"op":"add","path":"/spec/template/spec/domain/firmware/uuid","value":"the-uuid"}]}`

func TestAnAnswerIsGivenAgainWithAUUIDOfItsOwn(t *testing.T) {
	r, clock, asked, stop := answering(t, made)
	seen := map[any]bool{}
	ask := func(note string, wantAsked int64, wantCache defaulting.Cache) {
		t.Helper()
		response, err := r.Defaults(context.Background(), request(note))
		if err != nil {
			t.Fatal(err)
		}
		if asked.Load() != wantAsked || response.Cache != wantCache {
			t.Errorf("asked %d times, a %s; want %d, a %s", asked.Load(), response.Cache, wantAsked, wantCache)
		}
		uuid := response.Set[0].Value
		if uuid != response.Patch[1].Value {
			t.Errorf("%v is written, and it is said that %v is", response.Patch[1].Value, uuid)
		}
		if wantCache == defaulting.Hit && seen[uuid] {
			t.Errorf("two machines have %v", uuid)
		}
		seen[uuid] = true
		if response.Set[1].Value != "the-uuid-of-another" {
			t.Errorf("another value is %v", response.Set[1].Value)
		}
	}
	ask("a", 1, defaulting.Miss)
	ask("a", 1, defaulting.Hit)
	ask("b", 2, defaulting.Miss)
	clock.SetTime(clock.Now().Add(10*time.Second - 1))
	ask("a", 2, defaulting.Hit)
	clock.SetTime(clock.Now().Add(1))
	ask("a", 3, defaulting.Miss)
	// A hit does not extend the lifetime of a cached response.
	stop()
	ask("a", 3, defaulting.Hit)
	clock.SetTime(clock.Now().Add(10 * time.Second))
	if _, err := r.Defaults(context.Background(), request("a")); err == nil {
		t.Error("a defaulter that is not there has answered")
	}
}

func TestWhatIsNotRemembered(t *testing.T) {
	for name, response := range map[string]string{
		"MAC addresses":       `{"set":[{"path":"spec.template.spec.domain.devices.interfaces[0].macAddress","value":"02:00:00:00:00:01","source":"stencil"}]}`,
		"a UUID that is none": `{"set":[{"path":"spec.template.spec.domain.firmware.uuid","value":5,"source":"stencil"}]}`,
		"the whole machine":   `{"vm":{"spec":{}},"set":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r, _, asked, stop := answering(t, response)
			defer stop()
			for range 2 {
				if _, err := r.Defaults(context.Background(), request("a")); err != nil {
					t.Fatal(err)
				}
			}
			if asked.Load() != 2 {
				t.Errorf("asked %d times, want 2", asked.Load())
			}
		})
	}
}

func TestARefusalIsNotRemembered(t *testing.T) {
	r, _, asked, stop := answering(t, "no response")
	defer stop()
	for range 2 {
		if _, err := r.Defaults(context.Background(), request("a")); err == nil {
			t.Error("it was answered")
		}
	}
	if asked.Load() != 2 {
		t.Errorf("asked %d times, want 2", asked.Load())
	}
}

func TestManyShareAnAnswer(t *testing.T) {
	r, clock, _, stop := answering(t, made)
	defer stop()
	var (
		asking sync.WaitGroup
		seen   sync.Map
	)
	for range 8 {
		asking.Go(func() {
			for number := range 200 {
				response, err := r.Defaults(context.Background(), request(fmt.Sprint(number%3)))
				if err != nil {
					t.Error(err)
					return
				}
				if uuid := response.Set[0].Value; response.Cache == defaulting.Hit {
					if _, had := seen.LoadOrStore(uuid, true); had {
						t.Errorf("two machines have %v", uuid)
					}
				}
				if number%50 == 0 {
					clock.SetTime(clock.Now().Add(time.Second))
				}
			}
		})
	}
	asking.Wait()
}
