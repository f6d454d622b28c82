package manager

// Container is how a program runs in a cluster: from its image, as the kubelet and a container runtime start it for a pod of the chart. Its root is
// read-only and is all that it can read besides its volumes; it has no capabilities and cannot get any. It has its own processes, mounts and host
// name, and the network of the test, which the API server has to reach. It has none of /proc, /sys and /dev. Only Linux has this, and it needs root.
type Container struct {
	// Root is the folder of the unpacked image.
	Root string
	// Entrypoint is the path of the program in the image.
	Entrypoint string
	// User and Group are the numbers as which it runs.
	User, Group uint32
	// Args of the pod. Options.Args follow them.
	Args []string
	// Env are the variables of the pod. It has no others.
	Env []string
	// Volumes are folders by the paths where the pod mounts them, all of them read-only.
	Volumes map[string]string
}
