package syntax

deny["no"] {
	input.object.spec.running
}
