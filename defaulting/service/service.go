package service

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vmstencil/stencil/defaulting"
)

// MaxBody bounds a request, in bytes.
const MaxBody = 1 << 20

// deadline bounds a request, surveyDeadline a request for the machine types.
const (
	deadline       = 5 * time.Second
	surveyDeadline = 20 * time.Second
)

// Engine answers requests.
type Engine interface {
	// Serve answers a request as JSON with a response as JSON.
	Serve(ctx context.Context, body []byte) ([]byte, error)
	// Environment returns the current versions, and whether libvirt is available.
	Environment() (defaulting.Environment, bool)
}

// Surveyor returns the machine types by architecture.
type Surveyor interface {
	Machines(ctx context.Context) (map[string][]string, error)
}

// Options are the dependencies of the service.
type Options struct {
	Engine   Engine
	Surveyor Surveyor
	// Registry is served on /metrics; the service adds its own metrics.
	Registry *prometheus.Registry
	Log      logr.Logger
}

//go:embed openapi.json
var openAPI []byte

type service struct {
	Options
	requests *prometheus.CounterVec
	duration prometheus.Histogram
}

// New returns the handler.
func New(options Options) http.Handler {
	s := &service{
		Options: options,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stencil_defaulter_requests_total", Help: "Requests for defaults by the status of the answer.",
		}, []string{"status"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "stencil_defaulter_request_seconds", Help: "How long requests for defaults took.",
			Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	options.Registry.MustRegister(s.requests, s.duration)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/defaults", s.defaults)
	mux.HandleFunc("GET /v1/environment", s.environment)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(options.Registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, "application/json", openAPI) })
	return mux
}

func (s *service) defaults(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	status := http.StatusOK
	if answer, err := s.answer(r); err != nil {
		status = s.fail(w, err)
	} else {
		write(w, status, "application/json", answer)
	}
	s.duration.Observe(time.Since(begin).Seconds())
	s.requests.WithLabelValues(strconv.Itoa(status)).Inc()
}

func (s *service) answer(r *http.Request) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, defaulting.NewProblem(http.StatusUnsupportedMediaType, "requests are application/json")
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), deadline)
	defer cancel()
	return s.Engine.Serve(ctx, body)
}

func readBody(r *http.Request) ([]byte, error) {
	tooLarge := defaulting.NewProblem(http.StatusRequestEntityTooLarge, "a request has at most %d bytes", MaxBody)
	if r.ContentLength > MaxBody {
		return nil, tooLarge
	}
	if r.ContentLength >= 0 {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, defaulting.Malformed("reading the request: %v", err)
		}
		return body, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, defaulting.Malformed("reading the request: %v", err)
	}
	if len(body) > MaxBody {
		return nil, tooLarge
	}
	return body, nil
}

func (s *service) environment(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), surveyDeadline)
	defer cancel()
	machines, err := s.Surveyor.Machines(ctx)
	if err != nil {
		s.fail(w, err)
		return
	}
	environment, _ := s.Engine.Environment()
	environment.Machines = machines
	text, err := json.Marshal(environment)
	if err != nil {
		s.fail(w, err)
		return
	}
	write(w, http.StatusOK, "application/json", text)
}

func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	if _, ready := s.Engine.Environment(); !ready {
		s.fail(w, defaulting.Unavailable("libvirt is being started"))
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// fail writes a problem, and returns its status.
func (s *service) fail(w http.ResponseWriter, err error) int {
	var problem *defaulting.Problem
	switch {
	case errors.As(err, &problem):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		problem = defaulting.Late("the answer took too long")
	default:
		// Errors other than a Problem are logged, not returned to the caller.
		s.Log.Error(err, "answering a request failed")
		problem = defaulting.NewProblem(http.StatusInternalServerError, "the defaulter failed")
	}
	if problem.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(problem.RetryAfter.Seconds()))))
	}
	text, err := json.Marshal(problem)
	if err != nil {
		text = []byte("{}")
	}
	write(w, problem.Status, defaulting.ProblemType, text)
	return problem.Status
}

func write(w http.ResponseWriter, status int, kind string, text []byte) {
	w.Header()["Content-Type"] = []string{kind}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
