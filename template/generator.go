package template

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bounds of LENGTH in an expression [CHARACTERS]{LENGTH}.
const (
	minGenerated = 1
	maxGenerated = 255
)

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	upperLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits       = "0123456789"
	punctuation  = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

	// usualAlphabets contains most alphabets of generators, in byte order: they are parts of it, and take no memory.
	usualAlphabets = digits + lowerLetters + digits + upperLetters + lowerLetters

	// rangeOrder is the order in which ranges such as a-Z or x-4 run.
	rangeOrder = lowerLetters + upperLetters + digits
)

// expression is the form of an expression in the published API. It is matched against the original text only: generated text
// is not expanded again.
var expression = regexp.MustCompile(`\[([a-zA-Z0-9\-\\]+)\]\{(\w+)\}`)

// piece is a part of a generated value: literal text if length is 0, otherwise length characters drawn from an alphabet.
type piece struct {
	text   string
	length int
}

// generator makes the values of one parameter.
type generator []piece

// parseGenerator parses the field from of a parameter. Characters of a class that have no effect are returned as ignored.
func parseGenerator(from string) (g generator, ignored string, err error) {
	end := 0
	for _, match := range expression.FindAllStringSubmatchIndex(from, -1) {
		if match[0] > end {
			g = append(g, piece{text: from[end:match[0]]})
		}
		end = match[1]
		class, count := from[match[2]:match[3]], from[match[4]:match[5]]
		alphabet, skipped, err := parseClass(class)
		if err != nil {
			return nil, "", err
		}
		ignored += skipped
		length, err := strconv.Atoi(count)
		if err != nil || length < minGenerated || length > maxGenerated {
			return nil, "", fmt.Errorf("the length {%s} must be a number from %d to %d", shown(count), minGenerated, maxGenerated)
		}
		g = append(g, piece{text: alphabet, length: length})
	}
	if g == nil {
		return nil, "", fmt.Errorf("must hold an expression such as [a-z0-9]{8}")
	}
	if end < len(from) {
		g = append(g, piece{text: from[end:]})
	}
	// A copy has no spare capacity.
	return slices.Clone(g), ignored, nil
}

// parseClass parses the text between the brackets and returns its characters in byte order, each once.
func parseClass(class string) (alphabet, ignored string, err error) {
	var in [128]bool
	include := func(characters string) {
		for i := range len(characters) {
			in[characters[i]] = true
		}
	}
	for i := 0; i < len(class); {
		switch rest := class[i:]; {
		case strings.HasPrefix(rest, `\w`):
			include(rangeOrder + "_")
			i += 2
		case strings.HasPrefix(rest, `\d`):
			include(digits)
			i += 2
		case strings.HasPrefix(rest, `\a`):
			include(rangeOrder)
			i += 2
		case strings.HasPrefix(rest, `\A`):
			include(punctuation)
			i += 2
		case len(rest) >= 3 && rest[1] == '-':
			from, to := strings.IndexByte(rangeOrder, rest[0]), strings.IndexByte(rangeOrder, rest[2])
			if from < 0 || to < 0 || from > to {
				return "", "", fmt.Errorf("%s is not a range: ranges run from a letter or digit to a later one in the order a-z, A-Z, 0-9", rest[:3])
			}
			include(rangeOrder[from : to+1])
			i += 3
		case rest[0] == '-' || rest[0] == '\\':
			ignored += rest[:1]
			i++
		default:
			in[rest[0]] = true
			i++
		}
	}
	var characters []byte
	for c := range in {
		if in[c] {
			characters = append(characters, byte(c))
		}
	}
	if characters == nil {
		return "", "", fmt.Errorf("[%s] stands for no character", shown(class))
	}
	if at := strings.Index(usualAlphabets, string(characters)); at >= 0 {
		return usualAlphabets[at : at+len(characters)], ignored, nil
	}
	return string(characters), ignored, nil
}

// size returns the length of every value that g makes.
func (g generator) size() int {
	size := 0
	for _, p := range g {
		if p.length == 0 {
			size += len(p.text)
		}
		size += p.length
	}
	return size
}

// drawn returns the number of characters that g draws for one value.
func (g generator) drawn() int {
	drawn := 0
	for _, p := range g {
		drawn += p.length
	}
	return drawn
}

// append appends a value.
func (g generator) append(b []byte, random *entropy) ([]byte, error) {
	for _, p := range g {
		if p.length == 0 {
			b = append(b, p.text...)
		}
		for range p.length {
			i, err := random.below(len(p.text))
			if err != nil {
				return nil, err
			}
			b = append(b, p.text[i])
		}
	}
	return b, nil
}

// entropy returns the bytes of a source of random bytes.
type entropy struct {
	source io.Reader
	block  []byte // what is read at a time
	next   int    // the first unused byte of block
}

// maxRejected is the number of consecutive bytes that entropy rejects before it reports its source as broken. A sound source
// never reaches this in practice: each byte is rejected with a probability below one half.
const maxRejected = 1000

// below returns a number from 0 to n-1, each with the same probability; n is at most 256. A byte at or above the largest
// multiple of n would favour the low numbers and is rejected.
func (e *entropy) below(n int) (int, error) {
	usable := 256 - 256%n
	for range maxRejected {
		if e.next == len(e.block) {
			if _, err := io.ReadFull(e.source, e.block); err != nil {
				return 0, fmt.Errorf("reading random bytes: %w", err)
			}
			e.next = 0
		}
		b := int(e.block[e.next])
		e.next++
		if b < usable {
			return b % n, nil
		}
	}
	return 0, fmt.Errorf("reading random bytes: %d in a row are unusable", maxRejected)
}
