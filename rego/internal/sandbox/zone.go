package sandbox

import (
	"fmt"
	"regexp"
	"sync"
	"time"
)

// zoneForm is the form of the names in the IANA time zone database. Other spellings of a path, such as Europe/./Zurich, would fill OPA's cache of
// zones, which is unbounded.
var zoneForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]{0,31}(/[A-Z][A-Za-z0-9_+-]{0,31}){0,2}$`)

// zones are the names of the database that were used.
var zones sync.Map

// CheckZone rejects what is no name of a time zone. The database is in the program (OPA imports time/tzdata); that of the host, if there is one, comes
// first. "Local" is rejected: it is the zone of the host that evaluates.
func CheckZone(name string) error {
	if name == "" {
		return nil // UTC
	}
	if _, found := zones.Load(name); found {
		return nil
	}
	if zoneForm.MatchString(name) && name != "Local" {
		if _, err := time.LoadLocation(name); err == nil {
			zones.Store(name, nil)
			return nil
		}
	}
	if len(name) > maxZoneQuoted {
		name = name[:maxZoneQuoted] + "…"
	}
	return fmt.Errorf("there is no time zone %q; time zones have the names of the IANA database, such as UTC and Europe/Zurich", name)
}

// maxZoneQuoted is the number of bytes of a name that a message has.
const maxZoneQuoted = 64
