package lib

# METADATA
# title: lib.quantity(value)
# description: >-
#   A Kubernetes quantity as a number: "1.5Gi" is 1610612736, "500m" is 0.5, 2 is 2. Undefined if the value is not a quantity.
# scope: document
quantity(value) := value if {
	is_number(value)
} else := to_number(digits) * quantity_factor[suffix] if {
	is_string(value)
	suffix := trim_left(value, "+-.0123456789")
	digits := trim_suffix(value, suffix)
	regex.match(quantity_digits, digits)
} else := to_number(digits) / quantity_divisor[suffix] if {
	is_string(value)
	suffix := trim_left(value, "+-.0123456789")
	digits := trim_suffix(value, suffix)
	regex.match(quantity_digits, digits)
} else := to_number(value) * 1 if {
	is_string(value)
	regex.match(`^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]+$`, value)
}

quantity_digits := `^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)$`

quantity_factor := {
	"": 1, "k": 1000, "M": 1000000, "G": 1000000000, "T": 1000000000000, "P": 1000000000000000, "E": 1000000000000000000,
	"Ki": 1024, "Mi": 1048576, "Gi": 1073741824, "Ti": 1099511627776, "Pi": 1125899906842624, "Ei": 1152921504606846976,
}

quantity_divisor := {"m": 1000, "u": 1000000, "n": 1000000000}
