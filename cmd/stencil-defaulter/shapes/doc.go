// Package shapes makes the machines that tests lay out, by name and at random.
package shapes
