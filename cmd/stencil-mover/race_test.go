//go:build race

package main

// mostMemory is more than the limit, because the race detector needs memory for itself; the gate runs the test without it.
const mostMemory = 512 << 20
