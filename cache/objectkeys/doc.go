// Package objectkeys caches the keys with which the objects of a template are encrypted until they are created: see internal/objects. The render
// webhook encrypts with them on every replica. The leader makes them and decrypts.
package objectkeys
