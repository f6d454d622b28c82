//go:build !race

package main

// mostMemory is the limit of a mover's memory in bytes.
const mostMemory = 128 << 20
