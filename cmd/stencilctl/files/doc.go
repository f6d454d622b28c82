// Package files has what commands share that read and write disks: folders with a template and its disks, new files, and the bar that shows progress.
package files
