package objects

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// keySize is the size of a key in bytes, of AES-256.
	keySize = 32
	// idTime is the layout of the time in the ID of a key, so that IDs sort by age.
	idTime = "20060102t150405z"

	// RenewAfter is the age of the newest key at which another one is made.
	RenewAfter = 7 * 24 * time.Hour
	// RetainFor is the age until which a key is kept although no VirtualMachine needs it: a request may have encrypted with it a moment ago.
	RetainFor = 8 * 24 * time.Hour
)

// ErrNoKey is returned by Seal if there is no key.
var ErrNoKey = errors.New("there is no key to encrypt the objects of the template with")

// Keys are the keys by their IDs, as the data of a Secret. The newest one encrypts, and all decrypt.
type Keys map[string][]byte

// Renewed returns the keys after rotation, and whether they changed: with a new one if the newest is old, and without those that are
// older than RetainFor and not in use. Entries that are not keys are left out.
func (k Keys) Renewed(now time.Time, inUse func(id string) bool) (Keys, bool) {
	kept := maps.Clone(k)
	if kept == nil {
		kept = Keys{}
	}
	newest := now.Add(-RenewAfter)
	maps.DeleteFunc(kept, func(id string, key []byte) bool {
		made, err := keyTime(id)
		if err != nil || len(key) != keySize {
			return true
		}
		if made.After(newest) {
			newest = made
		}
		return now.Sub(made) > RetainFor && !inUse(id)
	})
	changed := len(kept) != len(k)
	if newest.After(now.Add(-RenewAfter)) {
		return kept, changed
	}
	random := make([]byte, keySize+4)
	_, _ = rand.Read(random) // It never fails: see crypto/rand.
	kept[now.UTC().Format(idTime)+"-"+hex.EncodeToString(random[keySize:])] = random[:keySize]
	return kept, true
}

// keyTime returns when a key was made.
func keyTime(id string) (time.Time, error) {
	text, _, _ := strings.Cut(id, "-")
	return time.Parse(idTime, text)
}

// newest returns the ID of the key that encrypts.
func (k Keys) newest() string {
	ids := slices.Sorted(maps.Keys(k))
	for _, id := range slices.Backward(ids) {
		if _, err := keyTime(id); err == nil && len(k[id]) == keySize {
			return id
		}
	}
	return ""
}

// Binding is what an encrypted text belongs to. It cannot be decrypted for anything else.
type Binding struct {
	// Namespace and Name of the VirtualMachine.
	Namespace, Name string
	// Record is the text of its annotation "rendered".
	Record string
	// Requester is the user whose request was admitted, with a colon before it if the request was a dry run, see DryRun. It is part of the text,
	// because a stored VirtualMachine does not have it.
	Requester string
}

// additional returns the binding as one text. Names contain no NUL.
func (b Binding) additional() []byte {
	text := b.Namespace + "\x00" + b.Name + "\x00" + b.Record
	if b.Requester != "" {
		text += "\x00" + b.Requester
	}
	return []byte(text)
}

// encrypt returns the ID of the key, the nonce and the ciphertext in base64, and the requester, if there is one, separated by colons. The policy
// pending-objects reads the requester.
func (k Keys) encrypt(b Binding, plain []byte) (string, error) {
	id := k.newest()
	if id == "" {
		return "", ErrNoKey
	}
	aead, err := k.aead(id)
	if err != nil {
		return "", err
	}
	text := id + ":" + base64.StdEncoding.EncodeToString(aead.Seal(nil, nil, plain, b.additional()))
	if b.Requester != "" {
		text += ":" + b.Requester
	}
	return text, nil
}

// decrypt decrypts a text of the requester that it names.
func (k Keys) decrypt(b Binding, text string) ([]byte, error) {
	id, encoded, _ := strings.Cut(text, ":")
	encoded, b.Requester, _ = strings.Cut(encoded, ":")
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(encoded) == 0 {
		return nil, errors.New("the annotation is not the one that Stencil wrote")
	}
	if _, found := k[id]; !found {
		return nil, errors.New("the key that encrypted them does not exist")
	}
	aead, err := k.aead(id)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, sealed, b.additional())
	if err != nil {
		return nil, errors.New("the annotation was written for another VirtualMachine, or changed")
	}
	return plain, nil
}

func (k Keys) aead(id string) (cipher.AEAD, error) {
	block, err := aes.NewCipher(k[id])
	if err != nil {
		return nil, fmt.Errorf("key %s: %w", id, err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// KeyOf returns the ID of the key that encrypted an annotation.
func KeyOf(text string) string {
	id, _, _ := strings.Cut(text, ":")
	return id
}

// RequesterOf returns the user whose request was admitted with an annotation; empty if the annotation names none.
func RequesterOf(text string) string {
	_, rest, _ := strings.Cut(text, ":")
	_, requester, _ := strings.Cut(rest, ":")
	return requester
}

// DryRun returns the requester of a binding for a dry run. No object of it is created.
func DryRun(user string) string { return ":" + user }

// IsDryRun reports whether an annotation was written in a dry run.
func IsDryRun(text string) bool { return strings.HasPrefix(RequesterOf(text), ":") }
