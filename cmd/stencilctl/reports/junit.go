package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Suite is a group of test cases.
type Suite struct {
	Name, File string
	Cases      []Case
}

// Case is one test.
type Case struct {
	Name, Class, File string
	// Line is its position in the file; 0 is unknown.
	Line     int
	Duration time.Duration
	// Failure is why it failed, Error why it could not run. Both are empty if it passed.
	Failure, Error string
	Skipped        bool
}

// The elements of JUnit's XML, as CI systems read it.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		File     string     `xml:"file,attr,omitempty"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Time     string     `xml:"time,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Name    string    `xml:"name,attr"`
		Class   string    `xml:"classname,attr"`
		File    string    `xml:"file,attr,omitempty"`
		Line    int       `xml:"line,attr,omitempty"`
		Time    string    `xml:"time,attr"`
		Failure *message  `xml:"failure"`
		Error   *message  `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	}
	message struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes suites as XML.
func WriteJUnit(w io.Writer, from []Suite) error {
	var all suites
	for _, each := range from {
		s := each.xml()
		all.Tests, all.Failures, all.Errors = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors
		all.Suites = append(all.Suites, s)
	}
	raw, err := xml.MarshalIndent(all, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, raw)
	}
	return err
}

func (s *Suite) xml() suite {
	to := suite{Name: s.Name, File: s.File, Tests: len(s.Cases)}
	var took time.Duration
	for _, each := range s.Cases {
		took += each.Duration
		c := testCase{Name: each.Name, Class: each.Class, File: each.File, Line: each.Line, Time: seconds(each.Duration)}
		if each.Failure != "" {
			c.Failure = newMessage(each.Failure)
			to.Failures++
		}
		if each.Error != "" {
			c.Error = newMessage(each.Error)
			to.Errors++
		}
		if each.Skipped {
			c.Skipped = &struct{}{}
			to.Skipped++
		}
		to.Cases = append(to.Cases, c)
	}
	to.Time = seconds(took)
	return to
}

func newMessage(whole string) *message {
	first, _, _ := strings.Cut(whole, "\n")
	return &message{Message: first, Text: whole}
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
