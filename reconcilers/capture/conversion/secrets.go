package conversion

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vmstencil/stencil/api/template/v1beta1"
)

const (
	// generatedPassword is what new passwords are made from.
	generatedPassword = "[a-zA-Z0-9]{20}"

	// patternQuoted is what can stand between double quotes in YAML without changing what is around it.
	patternQuoted = `[ -!#-\[\]-~]+`

	// patternLine is the same, for what goes on behind a colon in a line of its own.
	patternLine = patternQuoted

	// patternPrivateKey is a private key in PEM.
	patternPrivateKey = `-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----(\n[A-Za-z0-9+/=]+)+\n-----END ([A-Z0-9]+ )*PRIVATE KEY-----\n?`
)

// search goes through one YAML document.
type search struct {
	*conversion
	path    string
	replace bool
	// mark is a word that the document does not hold; references stand for themselves until it is written again.
	mark       string
	references []literal
}

func (s *search) placeholder(i int) string { return fmt.Sprintf("%s-%d-", s.mark, i) }

// put has a scalar say a reference, between what else it says.
func (s *search) put(scalar *yaml.Node, before string, reference literal) {
	s.references = append(s.references, reference)
	scalar.Value = before + s.placeholder(len(s.references)-1)
	scalar.Tag, scalar.Style = "!!str", yaml.DoubleQuotedStyle
}

// putEncoded replaces a scalar by a reference, whose value may have several lines, and nothing else. The encoder writes the quotes.
func (s *search) putEncoded(scalar *yaml.Node, reference literal) {
	s.references = append(s.references, literal(strings.TrimSuffix(string(reference), "}")+"|yaml}"))
	scalar.Value, scalar.Tag, scalar.Style = s.placeholder(len(s.references)-1), "!!str", 0
}

// note tells of a secret.
func (s *search) note(at string, reference literal) {
	name := strings.TrimSuffix(strings.TrimPrefix(string(reference), "${"), "}")
	s.result.Secrets = append(s.result.Secrets, Secret{Path: s.path + " (" + at + ")", Parameter: name})
}

// mapping looks into the keys that are known, and then into everything.
func (s *search) mapping(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		s.everything(root, "")
		return
	}
	known := map[*yaml.Node]bool{}
	if password := value(root, "password"); secretScalar(password) {
		known[password] = true
		s.password(password, "password", "")
	}
	s.users(value(root, "users"), "users", known)
	if user := value(root, "user"); user != nil && user.Kind == yaml.MappingNode {
		s.user(user, "user", known)
	}
	chpasswd := value(root, "chpasswd")
	s.list(value(chpasswd, "list"), known)
	s.users(value(chpasswd, "users"), "chpasswd.users", known)
	keys := value(root, "ssh_keys")
	if keys != nil && keys.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(keys.Content); i += 2 {
			if each := keys.Content[i+1]; each.Kind == yaml.ScalarNode && privateKey.MatchString(each.Value) {
				known[each] = true
				s.key(each, "ssh_keys."+keys.Content[i].Value)
			}
		}
	}
	s.rest(root, "", known)
}

// users looks at the passwords of users.
func (s *search) users(users *yaml.Node, path string, known map[*yaml.Node]bool) {
	if users == nil || users.Kind != yaml.SequenceNode {
		return
	}
	for i, user := range users.Content {
		if user.Kind == yaml.MappingNode {
			s.user(user, fmt.Sprintf("%s[%d]", path, i), known)
		}
	}
}

// user looks at one. Nobody can generate a hash together with the password that belongs to it, so that fields for hashes become
// the field for a password.
func (s *search) user(user *yaml.Node, path string, known map[*yaml.Node]bool) {
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
		known[password] = true
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

// list looks at chpasswd.list, which is a list of USER:PASSWORD or one text of such lines.
func (s *search) list(list *yaml.Node, known map[*yaml.Node]bool) {
	switch {
	case list == nil:
	case list.Kind == yaml.SequenceNode:
		for i, item := range list.Content {
			user, password, found := strings.Cut(item.Value, ":")
			if item.Kind != yaml.ScalarNode || !found || tolerable(strings.TrimSpace(password)) {
				continue
			}
			known[item] = true
			var reference literal
			if s.replace {
				reference = s.declarePassword(user)
				s.put(item, user+":", reference)
			}
			s.note(fmt.Sprintf("chpasswd.list[%d]", i), reference)
		}
	case list.Kind == yaml.ScalarNode:
		known[list] = true
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

// password replaces one password. One that is written elsewhere, as an alias tells, stays.
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
	// Nobody else tells the person who has a machine made which passwords it has.
	s.message = append(s.message, escapeText(description)+": "+string(reference))
	return reference
}

var notWord = regexp.MustCompile(`[^a-zA-Z0-9]`)

// wholeKey is a text that is a private key and nothing else.
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

// everything looks at all of a document of which nothing is known.
func (s *search) everything(node *yaml.Node, path string) { s.rest(node, path, nil) }

// secretKeys are keys whose values are secrets wherever they stand.
var secretKeys = map[string]bool{
	"password": true, "passwd": true, "plain_text_passwd": true, "hashed_passwd": true, "passphrase": true, "psk": true,
}

// rest tells of secrets in places that are not known: what is there stays.
func (s *search) rest(node *yaml.Node, path string, known map[*yaml.Node]bool) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, each := node.Content[i], node.Content[i+1]
			at := key.Value
			if path != "" {
				at = path + "." + at
			}
			if secretKeys[strings.ToLower(key.Value)] && secretScalar(each) && !known[each] {
				s.note(at, "")
				continue
			}
			s.rest(each, at, known)
		}
	case yaml.SequenceNode:
		for i, each := range node.Content {
			s.rest(each, fmt.Sprintf("%s[%d]", path, i), known)
		}
	case yaml.ScalarNode:
		switch {
		case known[node]:
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

// value is what a key of a mapping has; nil when there is none.
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

// tolerable says that a password is none: cloud-init makes it itself, or the account is locked.
func tolerable(password string) bool {
	return password == "" || password == "R" || password == "RANDOM" || strings.Trim(password, "!*") == ""
}
