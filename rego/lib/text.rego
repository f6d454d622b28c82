package lib

# METADATA
# title: lib.glob(pattern, value)
# description: >-
#   True if the whole value matches the pattern. In the pattern, * matches any characters and every other character
#   matches itself.
# scope: document
glob(pattern, value) if pattern == value

glob(pattern, value) if {
	contains(pattern, "*")
	parts := split(pattern, "*")
	startswith(value, parts[0])
	endswith(value, parts[count(parts) - 1])
	regex.match(sprintf("(?s)^%s$", [concat(".*", [glob_literal(part) | some part in parts])]), value)
}

glob_literal(text) := regex.replace(text, `([^A-Za-z0-9])`, `\$1`)

# METADATA
# title: lib.matches_any(patterns, value)
# description: True if at least one pattern of an array matches the value as in lib.glob.
# scope: document
matches_any(patterns, value) if {
	some pattern in patterns
	glob(pattern, value)
}

# METADATA
# title: lib.url(text)
# description: >-
#   The scheme and the host of a URL, in lower case, the host without its port. Undefined if the authority contains
#   anything but a host and a port: programs disagree about the host of a URL with user:password@ or a backslash.
# scope: document
url(text) := {"scheme": lower(parts[1]), "host": trim_suffix(lower(parts[2]), ".")} if {
	parts := regex.find_all_string_submatch_n(`^([A-Za-z][A-Za-z0-9+.-]*)://([A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?:[/?#].*)?$`, text, 1)[0]
}

# METADATA
# title: lib.quoted(values)
# description: The values of an array or a set as a list for a message, such as "a", "b"; none if it is empty.
# scope: document
quoted(values) := "none" if {
	count(values) == 0
} else := concat(", ", sort([sprintf("%q", [value]) | some value in values]))
