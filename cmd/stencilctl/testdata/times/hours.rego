package hours

deny contains sprintf("VirtualMachines are created from 8 to 18 o'clock UTC, and it is %d", [hour]) if {
	hour := time.clock(time.parse_rfc3339_ns(input.request.time))[0]
	not hour in numbers.range(8, 17)
}
