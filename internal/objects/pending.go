package objects

import (
	"encoding/json"
	"fmt"
	"time"
)

// MaximumSize is the maximum size of the encrypted objects in bytes. Annotations of an object may have 256 KiB in all, and
// kubectl apply stores the manifest in one.
const MaximumSize = 128 << 10

// ClockSkew is the longest time between the encryption of objects and the creation of their VirtualMachine. It bounds replays: who deletes
// a VirtualMachine whose objects do not exist yet, and creates one of the same name with the same annotations, gets them within this time only.
const ClockSkew = 5 * time.Minute

// Pending are the objects of a VirtualMachine that do not exist yet.
type Pending struct {
	// Sealed is when they were encrypted.
	Sealed time.Time `json:"sealed"`
	// Objects are the objects in their order in the template.
	Objects []Object `json:"objects"`
	// Sensitive are the values of sensitive parameters, which must not appear in logs and messages.
	Sensitive []string `json:"sensitive,omitempty"`
}

// Object is one of them.
type Object struct {
	// Group, Version and Resource are where it is created.
	Group    string `json:"group,omitempty"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// Manifest is the object as it was rendered.
	Manifest json.RawMessage `json:"manifest"`
}

// TooLargeError is returned by Seal for objects that are larger than MaximumSize.
type TooLargeError struct{ Size int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the rendered objects have %d bytes when they are encrypted, and at most %d are possible", e.Size, MaximumSize)
}

// Seal encrypts the objects for the VirtualMachine of the binding. It returns ErrNoKey if there is no key, and a *TooLargeError.
func (p Pending) Seal(keys Keys, b Binding) (string, error) {
	plain, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encoding the objects of the template: %w", err)
	}
	text, err := keys.encrypt(b, plain)
	if err != nil {
		return "", err
	}
	size := len(text)
	if b.Requester != "" {
		size -= len(":") + len(b.Requester)
	}
	if size > MaximumSize {
		return "", &TooLargeError{Size: size}
	}
	return text, nil
}

// Open decrypts the objects of a VirtualMachine that was created at a time.
func Open(keys Keys, b Binding, text string, created time.Time) (Pending, error) {
	plain, err := keys.decrypt(b, text)
	if err != nil {
		return Pending{}, err
	}
	var p Pending
	if err := json.Unmarshal(plain, &p); err != nil {
		return Pending{}, fmt.Errorf("reading the decrypted objects: %w", err)
	}
	if between := created.Sub(p.Sealed).Abs(); between > ClockSkew {
		return Pending{}, fmt.Errorf("the annotation was written for a VirtualMachine of the same name that was created %s earlier or later", between.Round(time.Second))
	}
	return p, nil
}
