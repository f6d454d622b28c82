package conversion

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	// generatedPassword is the expression from which new passwords are generated.
	generatedPassword = "[a-zA-Z0-9]{20}"

	// patternQuoted matches text that is safe between double quotes in YAML.
	patternQuoted = `[ -!#-\[\]-~]+`

	// patternLine matches text that is safe after a colon in a line of its own.
	patternLine = patternQuoted

	// patternPrivateKey matches a private key in PEM.
	patternPrivateKey = `-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----(\n[A-Za-z0-9+/=]+)+\n-----END ([A-Z0-9]+ )*PRIVATE KEY-----\n?`
)

// search searches one YAML document.
type search struct {
	*conversion
	path    string
	replace bool
	// mark is a word that the document does not contain; placeholders made from it replace references until the document is encoded.
	mark       string
	references []literal
}

func (s *search) placeholder(i int) string { return fmt.Sprintf("%s-%d-", s.mark, i) }

// put replaces the value of a scalar by the text before and a reference.
func (s *search) put(scalar *yaml.Node, before string, reference literal) {
	s.references = append(s.references, reference)
	scalar.Value = before + s.placeholder(len(s.references)-1)
	scalar.Tag, scalar.Style = "!!str", yaml.DoubleQuotedStyle
}

// putEncoded replaces the value of a scalar by a reference alone, which may have several lines. The filter yaml of the reference adds the
// quotes.
func (s *search) putEncoded(scalar *yaml.Node, reference literal) {
	s.references = append(s.references, literal(strings.TrimSuffix(string(reference), "}")+"|yaml}"))
	scalar.Value, scalar.Tag, scalar.Style = s.placeholder(len(s.references)-1), "!!str", 0
}

// note reports a secret.
func (s *search) note(at string, reference literal) {
	name := strings.TrimSuffix(strings.TrimPrefix(string(reference), "${"), "}")
	s.result.Secrets = append(s.result.Secrets, Secret{Path: s.path + " (" + at + ")", Parameter: name})
}

// mapping searches the keys of cloud-config that hold secrets, and then the whole document.
func (s *search) mapping(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		s.everything(root, "")
		return
	}
	visited := map[*yaml.Node]bool{}
	if password := value(root, "password"); secretScalar(password) {
		visited[password] = true
		s.password(password, "password", "")
	}
	s.users(value(root, "users"), "users", visited)
	if user := value(root, "user"); user != nil && user.Kind == yaml.MappingNode {
		s.user(user, "user", visited)
	}
	chpasswd := value(root, "chpasswd")
	s.list(value(chpasswd, "list"), visited)
	s.users(value(chpasswd, "users"), "chpasswd.users", visited)
	keys := value(root, "ssh_keys")
	if keys != nil && keys.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(keys.Content); i += 2 {
			if each := keys.Content[i+1]; each.Kind == yaml.ScalarNode && privateKey.MatchString(each.Value) {
				visited[each] = true
				s.key(each, "ssh_keys."+keys.Content[i].Value)
			}
		}
	}
	s.rest(root, "", visited)
}

// users searches the passwords of users.
func (s *search) users(users *yaml.Node, path string, visited map[*yaml.Node]bool) {
	if users == nil || users.Kind != yaml.SequenceNode {
		return
	}
	for i, user := range users.Content {
		if user.Kind == yaml.MappingNode {
			s.user(user, fmt.Sprintf("%s[%d]", path, i), visited)
		}
	}
}

// user searches one user. A hash and its password cannot be generated together, so a field for a hash is replaced by the field for a
// password.
func (s *search) user(user *yaml.Node, path string, visited map[*yaml.Node]bool) {
	name := ""
	if node := value(user, "name"); node != nil && node.Kind == yaml.ScalarNode {
		name = node.Value
	}
	for i := 0; i+1 < len(user.Content); i += 2 {
		key, password := user.Content[i], user.Content[i+1]
		switch key.Value {
		case "passwd", "hashed_passwd", "plain_text_passwd", "password":
		default:
			continue
		}
		if !secretScalar(password) {
			continue
		}
		visited[password] = true
		s.password(password, path+"."+key.Value, name)
		if !s.replace || password.Kind != yaml.ScalarNode {
			continue
		}
		if key.Value == "passwd" || key.Value == "hashed_passwd" {
			key.Value = "plain_text_passwd"
		}
		if kind := value(user, "type"); key.Value == "password" && kind != nil && kind.Value == "hash" {
			kind.Value = "text"
		}
	}
}

// list searches chpasswd.list, which is a list of USER:PASSWORD or one text with such lines.
func (s *search) list(list *yaml.Node, visited map[*yaml.Node]bool) {
	switch {
	case list == nil:
	case list.Kind == yaml.SequenceNode:
		for i, item := range list.Content {
			user, password, found := strings.Cut(item.Value, ":")
			if item.Kind != yaml.ScalarNode || !found || tolerable(strings.TrimSpace(password)) {
				continue
			}
			visited[item] = true
			var reference literal
			if s.replace {
				reference = s.declarePassword(user)
				s.put(item, user+":", reference)
			}
			s.note(fmt.Sprintf("chpasswd.list[%d]", i), reference)
		}
	case list.Kind == yaml.ScalarNode:
		visited[list] = true
		lines := strings.Split(list.Value, "\n")
		for i, line := range lines {
			user, password, found := strings.Cut(line, ":")
			if !found || tolerable(strings.TrimSpace(password)) {
				continue
			}
			var reference literal
			if s.replace {
				reference = s.declarePassword(user)
				s.references = append(s.references, reference)
				lines[i] = user + ":" + s.placeholder(len(s.references)-1)
			}
			s.note(fmt.Sprintf("chpasswd.list, line %d", i+1), reference)
		}
		list.Value = strings.Join(lines, "\n")
	}
}

// password replaces one password. If it is an alias of a value elsewhere, it is retained.
func (s *search) password(scalar *yaml.Node, at, user string) {
	var reference literal
	if s.replace && scalar.Kind == yaml.ScalarNode {
		reference = s.declarePassword(user)
		s.put(scalar, "", reference)
	}
	s.note(at, reference)
}

func (s *search) declarePassword(user string) literal {
	name, description := "PASSWORD", "Password of the default user"
	if user = strings.TrimSpace(user); user != "" {
		name += "_" + strings.ToUpper(notWord.ReplaceAllString(user, "_"))
		description = "Password of the user " + user
	}
	reference := s.declare(v1beta1.Parameter{
		Name: name, Description: description, Generate: v1beta1.GeneratorExpression, From: generatedPassword,
		Required: true, Pattern: patternLine, Sensitive: true,
	})
	// Only the template's message shows users the passwords of a new VM.
	s.message = append(s.message, escapeText(description)+": "+string(reference))
	return reference
}

var notWord = regexp.MustCompile(`[^a-zA-Z0-9]`)

// wholeKey matches a text that consists of one private key.
var wholeKey = regexp.MustCompile(`^\s*-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----[^-]*-----END ([A-Z0-9]+ )*PRIVATE KEY-----\s*$`)

// key replaces one private key.
func (s *search) key(scalar *yaml.Node, at string) {
	var reference literal
	if s.replace && wholeKey.MatchString(scalar.Value) {
		name := "PRIVATE_KEY"
		if last := at[strings.LastIndexByte(at, '.')+1:]; strings.HasPrefix(at, "ssh_keys.") {
			name = "SSH_" + strings.ToUpper(notWord.ReplaceAllString(last, "_"))
		}
		reference = s.declare(v1beta1.Parameter{
			Name: name, Description: "Private key in PEM",
			Required: true, Multiline: true, Pattern: patternPrivateKey, Sensitive: true,
		})
		s.putEncoded(scalar, reference)
	}
	s.note(at, reference)
}

// everything searches a document of unknown structure.
func (s *search) everything(node *yaml.Node, path string) { s.rest(node, path, nil) }

// secretKeys are keys with values that are secrets at any place.
var secretKeys = map[string]bool{
	"password": true, "passwd": true, "plain_text_passwd": true, "hashed_passwd": true, "passphrase": true, "psk": true,
}

// rest reports secrets at other places, and retains their values, except for private keys.
func (s *search) rest(node *yaml.Node, path string, visited map[*yaml.Node]bool) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, each := node.Content[i], node.Content[i+1]
			at := key.Value
			if path != "" {
				at = path + "." + at
			}
			if secretKeys[strings.ToLower(key.Value)] && secretScalar(each) && !visited[each] {
				s.note(at, "")
				continue
			}
			s.rest(each, at, visited)
		}
	case yaml.SequenceNode:
		for i, each := range node.Content {
			s.rest(each, fmt.Sprintf("%s[%d]", path, i), visited)
		}
	case yaml.ScalarNode:
		switch {
		case visited[node]:
		case privateKey.MatchString(node.Value):
			s.key(node, path)
		case isCommand(path) && passwordCommand.MatchString(node.Value):
			s.note(path, "")
		}
	}
}

func isCommand(path string) bool {
	return strings.HasPrefix(path, "runcmd[") || strings.HasPrefix(path, "bootcmd[")
}

// sshKey makes the first authorized key a parameter.
func (s *search) sshKey(root *yaml.Node) {
	candidates := []*yaml.Node{value(root, "ssh_authorized_keys")}
	if users := value(root, "users"); users != nil && users.Kind == yaml.SequenceNode {
		for _, user := range users.Content {
			candidates = append(candidates, value(user, "ssh_authorized_keys"))
		}
	}
	for _, keys := range candidates {
		if keys == nil || keys.Kind != yaml.SequenceNode || len(keys.Content) == 0 || keys.Content[0].Kind != yaml.ScalarNode {
			continue
		}
		key := keys.Content[0]
		s.put(key, "", s.declare(v1beta1.Parameter{
			Name: string(v1beta1.CaptureSSHKey), Description: "SSH public key that may log in", Value: strings.TrimSpace(key.Value),
			Required: true, Pattern: patternQuoted,
		}))
		return
	}
}

// value returns the value of a key of a mapping; nil if there is none.
func value(mapping *yaml.Node, key string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func secretScalar(node *yaml.Node) bool {
	if node != nil && node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node != nil && node.Kind == yaml.ScalarNode && node.Tag != "!!null" && node.Tag != "!!bool" && !tolerable(node.Value)
}

// tolerable reports whether a value is no password: cloud-init generates one, or the account is locked.
func tolerable(password string) bool {
	return password == "" || password == "R" || password == "RANDOM" || strings.Trim(password, "!*") == ""
}
