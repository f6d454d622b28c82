package registry

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	containers "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/vmstencil/stencil/api/stencil/v1alpha1"
	"github.com/vmstencil/stencil/goldenimage"
	"github.com/vmstencil/stencil/internal/outbound"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// handler is a registry that is kept in memory.
func handler() http.Handler {
	return containers.New(containers.Logger(log.New(io.Discard, "", 0)))
}

// serve serves a handler on loopback and returns its address, HOST:PORT.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// image returns an image for an architecture.
func image(t *testing.T, architecture string) v1.Image {
	t.Helper()
	made, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = architecture, "linux"
	if made, err = mutate.ConfigFile(made, config); err != nil {
		t.Fatal(err)
	}
	return made
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func tagged(t *testing.T, repository, tag string) name.Tag {
	t.Helper()
	made, err := name.NewTag(repository + ":" + tag)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// push pushes a new image for amd64 under tags, and returns its digest.
func push(t *testing.T, repository string, tags ...string) string {
	t.Helper()
	made := image(t, "amd64")
	for _, tag := range tags {
		if err := remote.Write(tagged(t, repository, tag), made); err != nil {
			t.Fatal(err)
		}
	}
	return digestOf(t, made)
}

// newest is the result of a check, as DIGEST TAG of each architecture, with its index as of INDEX, or its error.
func newest(t *testing.T, source v1alpha1.GoldenImageRegistry, architectures ...string) string {
	t.Helper()
	return result((&Client{Allowed: loopback}).Newest(t.Context(), &source, architectures, outbound.Credentials{}))
}

func result(found []goldenimage.Found, err error) string {
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, one := range found {
		part := one.Digest + " " + one.Tag
		if one.Index != "" {
			part += " of " + one.Index
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTags(t *testing.T) {
	repository := serve(t, handler()) + "/os/fedora"
	first := push(t, repository, "41", "latest")
	second := push(t, repository, "42.1", "rawhide")
	for text, tc := range map[string]struct {
		source v1alpha1.GoldenImageRegistry
		want   string
	}{
		"the default is latest":          {v1alpha1.GoldenImageRegistry{}, first + " latest"},
		"a tag":                          {v1alpha1.GoldenImageRegistry{Tag: "rawhide"}, second + " rawhide"},
		"the newest version of a range":  {v1alpha1.GoldenImageRegistry{Tags: &v1alpha1.GoldenImageTags{Semver: ">=41 <43"}}, second + " 42.1"},
		"a pattern":                      {v1alpha1.GoldenImageRegistry{Tags: &v1alpha1.GoldenImageTags{Pattern: "4[0-9]"}}, first + " 41"},
		"no tag matches":                 {v1alpha1.GoldenImageRegistry{Tags: &v1alpha1.GoldenImageTags{Semver: ">43"}}, "no tag matches spec.source.registry.tags among the 4 of the image"},
		"an invalid range names a field": {v1alpha1.GoldenImageRegistry{Tags: &v1alpha1.GoldenImageTags{Semver: "x y"}}, `spec.source.registry.tags.semver: "x y" is no range of versions such as ">=41 <43": improper constraint: "x y"`},
	} {
		t.Run(text, func(t *testing.T) {
			for _, scheme := range []string{"", "docker://"} {
				tc.source.URL = scheme + repository
				equal(t, newest(t, tc.source), tc.want)
			}
		})
	}
	t.Run("a tag that is missing", func(t *testing.T) {
		got := newest(t, v1alpha1.GoldenImageRegistry{URL: repository, Tag: "40"})
		if !strings.HasPrefix(got, "reading "+repository+":40: ") || !strings.Contains(got, "MANIFEST_UNKNOWN") {
			t.Error(got)
		}
	})
	t.Run("an address that is none", func(t *testing.T) {
		if got := newest(t, v1alpha1.GoldenImageRegistry{URL: "Not a repository"}); !strings.HasPrefix(got, "spec.source.registry.url: ") {
			t.Error(got)
		}
	})
}

func TestArchitectures(t *testing.T) {
	repository := serve(t, handler()) + "/os/fedora"
	amd64, arm64, windows := image(t, "amd64"), image(t, "arm64"), image(t, "amd64")
	index := v1.ImageIndex(empty.Index)
	for _, one := range []struct {
		image            v1.Image
		os, architecture string
	}{{windows, "windows", "amd64"}, {amd64, "linux", "amd64"}, {arm64, "linux", "arm64"}} {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: one.image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: one.os, Architecture: one.architecture}},
		})
	}
	windowsOnly := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: windows, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "windows", Architecture: "amd64"}},
	})
	for tag, one := range map[string]v1.ImageIndex{"all": index, "windows": windowsOnly} {
		if err := remote.WriteIndex(tagged(t, repository, tag), one); err != nil {
			t.Fatal(err)
		}
	}
	single := push(t, repository, "single")
	for text, tc := range map[string]struct {
		tag           string
		architectures []string
		want          string
	}{
		"all in the order of the spec":        {"all", []string{"arm64", "amd64"}, digestOf(t, arm64) + " all of " + digestOf(t, index) + ", " + digestOf(t, amd64) + " all of " + digestOf(t, index)},
		"without architectures the index":     {"all", nil, digestOf(t, index) + " all"},
		"one is missing":                      {"all", []string{"amd64", "s390x"}, "reading " + repository + ":all: it has no image for linux/s390x, only for amd64, arm64: take s390x out of spec.architectures"},
		"the index has nothing for linux":     {"windows", []string{"amd64"}, "reading " + repository + ":windows: it has no image for linux"},
		"an image that is for one only":       {"single", []string{"amd64"}, single + " single"},
		"an image that is for another only":   {"single", []string{"arm64"}, "reading " + repository + `:single: the image is for "amd64" only: take arm64 out of spec.architectures`},
		"an image for one without a platform": {"single", nil, single + " single"},
	} {
		t.Run(text, func(t *testing.T) {
			equal(t, newest(t, v1alpha1.GoldenImageRegistry{URL: repository, Tag: tc.tag}, tc.architectures...), tc.want)
		})
	}
}

func TestAddressesThatAreNotPublicAreDenied(t *testing.T) {
	const denied = ": the address is not public: allow its network in the chart's value goldenImages.allowedNetworks"
	t.Run("by a check, which sends nothing", func(t *testing.T) {
		requested := false
		repository := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requested = true })) + "/os/fedora"
		got := result((&Client{}).Newest(t.Context(), &v1alpha1.GoldenImageRegistry{URL: repository}, nil, outbound.Credentials{}))
		if !strings.HasPrefix(got, "reading "+repository+":latest: ") || !strings.HasSuffix(got, "127.0.0.1"+denied) || requested {
			t.Error(got, requested)
		}
	})
	t.Run("when a registry redirects there", func(t *testing.T) {
		elsewhere := serve6(t, handler())
		from := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		client := &Client{Allowed: loopback[:1]}
		got := result(client.Newest(t.Context(), &v1alpha1.GoldenImageRegistry{URL: from + "/os/fedora"}, nil, outbound.Credentials{}))
		if !strings.HasSuffix(got, "::1"+denied) {
			t.Error(got)
		}
	})
}

// serve6 serves a handler on the loopback of IPv6.
func serve6(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("there is no IPv6: ", err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

func TestAnswersThatAreWrong(t *testing.T) {
	// answer serves a registry of which manifests and lists of tags are answered by a function.
	answer := func(t *testing.T, handle http.HandlerFunc) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v2/" {
				return
			}
			handle(w, r)
		})) + "/os/fedora"
	}
	t.Run("a registry that does not answer ends with the time limit", func(t *testing.T) {
		repository := answer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := (&Client{Allowed: loopback}).Newest(ctx, &v1alpha1.GoldenImageRegistry{URL: repository}, nil, outbound.Credentials{})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("a manifest that ends early", func(t *testing.T) {
		repository := answer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
			_, _ = io.WriteString(w, `{"schemaVersion": 2, "manif`)
		})
		if got := newest(t, v1alpha1.GoldenImageRegistry{URL: repository}); got != "reading "+repository+":latest: unexpected EOF" {
			t.Error(got)
		}
	})
	t.Run("a list of tags that does not end", func(t *testing.T) {
		repository := answer(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"tags": [`)
			for part := bytes.Repeat([]byte(`"latest",`), 1000); r.Context().Err() == nil; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		})
		got := newest(t, v1alpha1.GoldenImageRegistry{URL: repository, Tags: &v1alpha1.GoldenImageTags{}})
		equal(t, got, "listing the tags of "+repository+": "+errLarge.Error())
	})
	t.Run("pages of tags that do not end", func(t *testing.T) {
		tags := bytes.Repeat([]byte(`"latest",`), 100_000)
		pages := 0
		repository := answer(t, func(w http.ResponseWriter, r *http.Request) {
			pages++
			w.Header().Set("Link", "<"+r.URL.Path+`?n=1000>; rel="next"`)
			_, _ = w.Write(append(append([]byte(`{"tags": [`), tags...), `"41"]}`...))
		})
		got := newest(t, v1alpha1.GoldenImageRegistry{URL: repository, Tags: &v1alpha1.GoldenImageTags{}})
		equal(t, got, "listing the tags of "+repository+": "+errLarge.Error())
		if limit := maximumAnswers/len(tags) + 1; pages > limit {
			t.Errorf("%d pages were read", pages)
		}
	})
	t.Run("a registry that is down", func(t *testing.T) {
		server := httptest.NewServer(handler())
		server.Close()
		got := newest(t, v1alpha1.GoldenImageRegistry{URL: strings.TrimPrefix(server.URL, "http://") + "/os/fedora"})
		if !strings.Contains(got, "connection refused") {
			t.Error(got)
		}
	})
}

func TestCredentialsAndAuthorities(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	inner := handler()
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if username, password, _ := r.BasicAuth(); username != "reader" || password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "log in first"}]}`, http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "https://") + "/os/fedora"
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	pushed := image(t, "amd64")
	if err := remote.Write(tagged(t, repository, "latest"), pushed, remote.WithTransport(server.Client().Transport),
		remote.WithAuth(&authn.Basic{Username: "reader", Password: "right"})); err != nil {
		t.Fatal(err)
	}
	for text, tc := range map[string]struct {
		with outbound.Credentials
		want string
	}{
		"both":                 {outbound.Credentials{Username: "reader", Password: "right", Authorities: [][]byte{authority}}, digestOf(t, pushed) + " latest"},
		"a wrong password":     {outbound.Credentials{Username: "reader", Password: "wrong", Authorities: [][]byte{authority}}, "UNAUTHORIZED: log in first"},
		"no credentials":       {outbound.Credentials{Authorities: [][]byte{authority}}, "UNAUTHORIZED: log in first"},
		"no authority":         {outbound.Credentials{Username: "reader", Password: "right"}, "certificate signed by unknown authority; " + errPlain.Error()},
		"an authority in DER":  {outbound.Credentials{Authorities: [][]byte{server.Certificate().Raw}}, "spec.source.registry.certConfigMap: it has a value without certificates in PEM"},
		"one of two is no PEM": {outbound.Credentials{Authorities: [][]byte{authority, []byte("-----BEGIN")}}, "spec.source.registry.certConfigMap: it has a value without certificates in PEM"},
	} {
		t.Run(text, func(t *testing.T) {
			got := result((&Client{Allowed: loopback}).Newest(t.Context(), &v1alpha1.GoldenImageRegistry{URL: repository}, nil, tc.with))
			// The library tries HTTP as well if the address is private.
			got = regexp.MustCompile(`Get "http://[^"]*": `).ReplaceAllString(got, "")
			if !strings.HasSuffix(got, tc.want) || strings.Contains(got, "right") || strings.Contains(got, "wrong") {
				t.Errorf("got  %s\nwant …%s", got, tc.want)
			}
		})
	}
	t.Run("credentials are not sent without TLS", func(t *testing.T) {
		sent := ""
		plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent += r.Header.Get("Authorization")
			server.Config.Handler.ServeHTTP(w, r)
		})) + "/os/fedora"
		got := result((&Client{Allowed: loopback}).Newest(t.Context(), &v1alpha1.GoldenImageRegistry{URL: plain}, nil, outbound.Credentials{Username: "reader", Password: "right"}))
		if sent != "" || !strings.HasSuffix(got, errPlain.Error()) {
			t.Error(sent, got)
		}
	})
}
