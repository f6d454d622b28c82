// Package reports writes the findings of commands for CI systems and code hosts: SARIF and JUnit's XML.
package reports
