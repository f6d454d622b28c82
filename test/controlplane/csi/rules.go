package csi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Step is one step of the driver. A rule's Namespace and Name are compared with those of the step's object.
type Step string

const (
	// ProvisionVolume makes the volume of a claim; the object is the claim.
	ProvisionVolume Step = "ProvisionVolume"
	// ExpandVolume makes the volume of a claim larger; the object is the claim.
	ExpandVolume Step = "ExpandVolume"
	// DeleteVolume deletes the volume that a deleted claim leaves; the object is that claim.
	DeleteVolume Step = "DeleteVolume"
	// BindSnapshot makes the content of a snapshot; the object is the snapshot, here and below.
	BindSnapshot Step = "BindSnapshot"
	// TakeSnapshot gives the content its handle, its time and its size.
	TakeSnapshot Step = "TakeSnapshot"
	// ReadySnapshot reports content and snapshot as ready to use.
	ReadySnapshot Step = "ReadySnapshot"
	// DeleteSnapshot deletes the content of a deleted snapshot.
	DeleteSnapshot Step = "DeleteSnapshot"
)

// Rule changes a step for the objects it applies to.
type Rule struct {
	// Namespace and Name limit the rule to some objects; empty is any.
	Namespace, Name string
	// Times is how many times the rule applies before it is spent; zero is always.
	Times int
	// Delay is how long the step takes.
	Delay time.Duration
	// Hold blocks the step until the rule is removed.
	Hold bool
	// Fail makes the step fail with this text, reported as the published components do. It is tried again.
	Fail string
	// Vanish deletes the step's object instead, including its finalizers.
	Vanish bool
	// Disorder reports the result too early: a snapshot is ready before its status names the content it is bound to.
	Disorder bool
	// Repeat is how many more times the result is written, each a change without new information for watchers.
	Repeat int
}

type rules struct {
	mutex   sync.Mutex
	set     []*standing
	changed func()
}

type standing struct {
	Rule
	step Step
	used int
}

// errHeld is returned while a rule holds a step.
var errHeld = errors.New("held by a rule")

// When adds a rule for a step. If several rules apply, the first counts. The returned function removes the rule, and the driver resumes what the rule
// held.
func (d *Driver) When(step Step, rule Rule) (remove func()) {
	added := &standing{Rule: rule, step: step}
	d.rules.mutex.Lock()
	d.rules.set = append(d.rules.set, added)
	d.rules.mutex.Unlock()
	return sync.OnceFunc(func() {
		d.rules.mutex.Lock()
		for i, one := range d.rules.set {
			if one == added {
				d.rules.set = append(d.rules.set[:i:i], d.rules.set[i+1:]...)
				break
			}
		}
		d.rules.mutex.Unlock()
		d.rules.changed()
	})
}

// rule returns the rule that applies to a step on an object, the zero rule when there is none, and counts its use.
func (r *rules) rule(step Step, namespace, name string) Rule {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, one := range r.set {
		applies := one.step == step && (one.Namespace == "" || one.Namespace == namespace) && (one.Name == "" || one.Name == name)
		if applies && (one.Times == 0 || one.used < one.Times) {
			one.used++
			return one.Rule
		}
	}
	return Rule{}
}

// failure is the error of a step that fails because of a rule.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

// begin applies a rule before its step is done.
func (r Rule) begin(ctx context.Context) error {
	if r.Hold {
		return errHeld
	}
	if r.Delay > 0 {
		timer := time.NewTimer(r.Delay)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting: %w", ctx.Err())
		case <-timer.C:
		}
	}
	if r.Fail != "" {
		return failure{r.Fail}
	}
	return nil
}
