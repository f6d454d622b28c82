package cli

import "errors"

// Exit codes. They are documented in docs/stencilctl.md and do not change.
const (
	// ExitOK: done, and nothing was found.
	ExitOK = 0
	// ExitFindings: done, and something was found: a policy that does not compile, a
	// test that fails, a request that would be denied.
	ExitFindings = 1
	// ExitUsage: the command line or a file that it names makes no sense.
	ExitUsage = 2
	// ExitCluster: the cluster could not be asked, or refuses.
	ExitCluster = 3
	// ExitInternal: something else went wrong, such as writing a file.
	ExitInternal = 4
)

// ErrFindings ends a command that has printed what it found.
var ErrFindings = errors.New("something was found")

// failure is an error with the exit code that it leads to.
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

// Internal marks an error as neither the user's nor the cluster's.
func Internal(err error) error { return marked(ExitInternal, err) }

func marked(code int, err error) error {
	var already *failure
	if err == nil || errors.As(err, &already) {
		return err
	}
	return &failure{code: code, err: err}
}

// ExitCode is the code with which a command ends that returned err. An error that
// nobody has marked comes from cobra, which refuses command lines.
func ExitCode(err error) int {
	var marked *failure
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrFindings):
		return ExitFindings
	case errors.As(err, &marked):
		return marked.code
	default:
		return ExitUsage
	}
}
