// Package seal holds the command seal: it examines disks for what identifies one VM.
package seal
