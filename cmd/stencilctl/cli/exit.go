package cli

import "errors"

// Exit codes. They are documented in docs/stencilctl.md and do not change.
const (
	// ExitOK means success without findings.
	ExitOK = 0
	// ExitFindings means success with findings: a policy that does not compile, a test that
	// fails, a request that would be denied.
	ExitFindings = 1
	// ExitUsage means that the command line, or a file that it names, is invalid.
	ExitUsage = 2
	// ExitCluster means that the cluster was not reachable, or rejected a request.
	ExitCluster = 3
	// ExitInternal means any other error, such as one of writing a file.
	ExitInternal = 4
	// ExitUndecided means that nothing was found, and that not everything could be tried.
	ExitUndecided = 5
)

// ErrFindings ends a command that has printed findings.
var ErrFindings = errors.New("something was found")

// ErrUndecided ends a command that has printed what it could not decide.
var ErrUndecided = errors.New("not everything could be decided")

// failure is an error with its exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// Usage marks an error as one of the command line, or of a file that it names.
func Usage(err error) error { return marked(ExitUsage, err) }

// Cluster marks an error as one of the cluster.
func Cluster(err error) error { return marked(ExitCluster, err) }

// Internal marks an error as caused by neither the user nor the cluster.
func Internal(err error) error { return marked(ExitInternal, err) }

func marked(code int, err error) error {
	var already *failure
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &failure{code: code, err: err}
}

// ExitCode returns the exit code for the error of a command. An error without a mark comes from
// cobra, which rejects command lines.
func ExitCode(err error) int {
	var marked *failure
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFindings):
		return ExitFindings
	case errors.Is(err, ErrUndecided):
		return ExitUndecided
	case errors.As(err, &marked):
		return marked.code
	default:
		return ExitUsage
	}
}
