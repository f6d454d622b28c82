package revision

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Class is the class of a stored copy.
type Class string

// Classes.
const (
	// Current is a copy in the target version with its five labels.
	Current Class = "Current"
	// Unlabelled is a copy in the target version without its labels, or with wrong ones.
	Unlabelled Class = "Unlabelled"
	// OldObject is a whole object in an older version.
	OldObject Class = "OldObject"
	// OldSpec is a SpecRevision.
	OldSpec Class = "SpecRevision"
	// Undecodable is a copy that the frozen types do not read. It is never touched.
	Undecodable Class = "Undecodable"
)

// Classes are all classes.
var Classes = []Class{Current, Unlabelled, OldObject, OldSpec, Undecodable}

// Action is what has to be done with a stored copy.
type Action string

// Actions.
const (
	// Retain leaves a current copy as it is.
	Retain Action = "Retain"
	// Relabel writes the five labels.
	Relabel Action = "Relabel"
	// Replace replaces the ControllerRevision by one of the same name.
	Replace Action = "Replace"
	// Skip leaves a copy that is not current as it is.
	Skip Action = "Skip"
)

// Decision is the decision about one stored copy.
type Decision struct {
	Class  Class
	Action Action
	// Version of the stored object; empty if it cannot be decoded.
	Version Version
	// Message states why the copy is skipped.
	Message string
	// Converted is set for Relabel and Replace.
	Converted *Converted
	// Identity of the instance type or preference, as far as it is known.
	Identity Identity
}

// Revision is a ControllerRevision with a stored copy.
type Revision struct {
	Name   string
	Labels map[string]string
	Data   []byte
}

// Decide decides about a stored copy, by the references to it. A SpecRevision has neither kind nor name: they are those of the references, and
// must occur in the name of the ControllerRevision, VM-NAME-UID-GENERATION, because KubeVirt uses a copy of another name as little as none.
func (d *Decider) Decide(r Revision, references []Reference) Decision {
	family, err := familyOf(references)
	if err != nil {
		return Decision{Class: Undecodable, Action: Skip, Message: err.Error()}
	}
	stored, convert, err := d.decode(r.Data, family)
	if err != nil {
		return Decision{Class: Undecodable, Action: Skip, Message: err.Error()}
	}
	decided := Decision{Version: stored.Version, Identity: stored.Identity}
	switch {
	case stored.SpecRevision:
		decided.Class = OldSpec
		if decided.Identity, err = identityOf(r, references); err != nil {
			return decided.skip(err)
		}
	case stored.Version != Target:
		decided.Class = OldObject
	default:
		decided.Class = Unlabelled
	}
	if decided.Converted, err = convert(decided.Identity); err != nil {
		return decided.skip(err)
	}
	switch {
	case decided.Class != Unlabelled:
		decided.Action = Replace
	case labelled(r.Labels, decided.Converted.Labels):
		decided.Class, decided.Action, decided.Converted = Current, Retain, nil
	default:
		decided.Action = Relabel
	}
	return decided
}

func (d Decision) skip(err error) Decision {
	d.Action, d.Message, d.Converted = Skip, err.Error(), nil
	return d
}

// labelled reports whether all wanted labels are there.
func labelled(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func familyOf(references []Reference) (Family, error) {
	family := UnknownFamily
	for _, r := range references {
		if family != UnknownFamily && family != r.Family {
			return "", errors.New("it is referred to as an instance type and as a preference")
		}
		family = r.Family
	}
	return family, nil
}

// madeOf ends the names of SpecRevisions.
var madeOf = regexp.MustCompile(`-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-([1-9][0-9]*)$`)

// identityOf returns what a SpecRevision was made of.
func identityOf(r Revision, references []Reference) (Identity, error) {
	found := map[Identity][]string{}
	for _, one := range references {
		i := Identity{Kind: one.ObjectKind, Name: one.ObjectName, Namespace: one.ObjectNamespace}
		found[i] = append(found[i], string(one.Kind)+" "+one.Name)
	}
	if len(found) == 0 {
		return Identity{}, errors.New("no VirtualMachine, snapshot or start revision refers to it, so the name of its instance type or preference is not known")
	}
	if len(found) > 1 {
		var who []string
		for i, holders := range found {
			slices.Sort(holders)
			who = append(who, fmt.Sprintf("%s %s (%s)", i.Kind, i.Name, strings.Join(slices.Compact(holders), ", ")))
		}
		slices.Sort(who)
		return Identity{}, fmt.Errorf("it is referred to as %s", strings.Join(who, " and "))
	}
	first := references[0]
	identity := Identity{Kind: first.ObjectKind, Name: first.ObjectName, Namespace: first.ObjectNamespace}
	ending := madeOf.FindStringSubmatch(r.Name)
	if ending == nil {
		return identity, fmt.Errorf("its name does not end in the uid and the generation of %s %s", identity.Kind, identity.Name)
	}
	if !strings.HasSuffix(strings.TrimSuffix(r.Name, ending[0]), "-"+identity.Name) {
		return identity, fmt.Errorf("its name does not contain that of %s %s, which refers to it", identity.Kind, identity.Name)
	}
	generation, err := strconv.ParseInt(ending[2], 10, 64)
	if err != nil {
		return identity, fmt.Errorf("the generation in its name: %w", err)
	}
	identity.UID, identity.Generation = ending[1], generation
	return identity, nil
}
