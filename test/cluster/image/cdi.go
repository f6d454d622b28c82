package image

import (
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// CDI are the sources of the images of CDI.
type CDI struct {
	// Version is the version of CDI, with the v.
	Version string
	// Source is the folder of CDI's module.
	Source string
	// Programs are the paths of programs by name.
	Programs map[string]string
}

// cdiUser is the user in the published images.
const cdiUser = "1001"

// cdiImages are the names of the images, and of the programs that they start; those in cdiTools are in all of them.
var (
	cdiImages = []string{"operator", "controller", "apiserver", "uploadproxy", "uploadserver", "importer", "cloner"}
	cdiTools  = []string{"cdi-containerimage-server", "cdi-image-size-detection", "cdi-source-update-poller"}
)

// CDIPrograms returns the names of the programs in CDI's images.
func CDIPrograms() []string {
	programs := append([]string{}, cdiTools...)
	for _, each := range cdiImages {
		programs = append(programs, "cdi-"+each)
	}
	return programs
}

// Images returns the images of CDI by their references. They share the base, a layer with qemu-img and nbdkit of Debian, and a layer that is written to a folder.
func (c CDI) Images(folder string, base Layer) (map[string]v1.Image, error) {
	files := []File{
		{Name: "usr/bin/cloner_startup.sh", Mode: 0o755, From: filepath.Join(c.Source, "cmd", "cdi-cloner", "cloner_startup.sh")},
		{Name: "tmp/", Mode: 0o1777},
	}
	for _, name := range CDIPrograms() {
		files = append(files, File{Name: "usr/bin/" + name, Mode: 0o755, From: c.Programs[name]})
	}
	programs, err := NewLayer(filepath.Join(folder, "cdi.tar"), "", files...)
	if err != nil {
		return nil, err
	}
	images := map[string]v1.Image{}
	for _, name := range cdiImages {
		entrypoint := []string{"/usr/bin/cdi-" + name}
		if name == "cloner" {
			entrypoint = []string{"/usr/bin/cloner_startup.sh"}
		}
		if images["quay.io/kubevirt/cdi-"+name+":"+c.Version], err = New(cdiUser, entrypoint, base, programs); err != nil {
			return nil, err
		}
	}
	return images, nil
}
