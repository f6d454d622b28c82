package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/vmstencil/stencil/cmd/stencil-defaulter/shapes"
)

// randomMachines is the number of VirtualMachines that a run tries.
const randomMachines = 500

// seedVariable replaces defaultSeed.
const (
	seedVariable = "STENCIL_SEED"
	defaultSeed  = 20260
)

func TestPropertiesOfRandomMachines(t *testing.T) {
	seed := uint64(defaultSeed)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this run", seedVariable, seed)
	e := newEngine(startSupervisor(t, nil))
	random := rand.New(rand.NewPCG(seed, 0))
	for number := range randomMachines {
		vm := shapes.New(shapes.Random(random)...)
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			checkProperties(t, e, vm)
			if t.Failed() {
				t.Logf("the machine: %s", encode(t, vm))
			}
		})
	}
}
