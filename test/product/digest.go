package product

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variable is the environment variable that holds the digest of the product under test.
const Variable = "STENCIL_PRODUCT"

// errNoDigest is the failure of a test binary that the runner did not start.
var errNoDigest = errors.New(Variable + " is not set, so the Go command could answer this test from its cache although the product has changed; " +
	"run `make test`, `make test-full`, or for some packages `make e2e PACKAGES=./e2e/road RUN=TestCreate`")

// Digest returns the digest of the product under test. Without one, the error names the command to use.
func Digest() (string, error) {
	// os.Getenv, not syscall.Getenv: this call makes the result of the test depend on the value.
	digest := os.Getenv(Variable)
	if digest == "" {
		return "", errNoDigest
	}
	if decoded, err := hex.DecodeString(digest); err != nil || len(decoded) != sha256.Size {
		return "", fmt.Errorf("%s is %q, want a SHA-256 digest in hexadecimal: %w", Variable, digest, errNoDigest)
	}
	return digest, nil
}

// Depend makes the result of the running test depend on the product. The testing package records only variables that are read while tests run, so a
// call of [Digest] in TestMain, before M.Run, has no effect: every function through which tests reach a plane or a program calls Depend.
func Depend() { _ = os.Getenv(Variable) }

// outside are the folders of the checkout with files that tests read in addition to the programs: the chart with its CRDs, documents with the
// examples that tests apply, and the command that builds releases.
var outside = []string{"charts", "docs", "hack/release"}

// digestOf hashes the programs in a folder, the files of the checkout that tests read, and further lines. Paths are relative, so
// that the same tree has the same digest in another folder.
func digestOf(root, programs string, further ...string) (string, error) {
	var lines []string
	add := func(label, path string) error {
		sum, err := fileSum(path)
		if err != nil {
			return err
		}
		lines = append(lines, label+" "+sum)
		return nil
	}
	for _, name := range names() {
		if err := add("program "+name, filepath.Join(programs, name)); err != nil {
			return "", err
		}
	}
	for _, folder := range outside {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			return add("file "+filepath.ToSlash(relative), path)
		})
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", folder, err)
		}
	}
	for _, line := range further {
		lines = append(lines, "with "+line)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

func fileSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing the product: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
