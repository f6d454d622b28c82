package exemption

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// accountPrefix begins the user names of service accounts.
	accountPrefix = "system:serviceaccount:"
	// componentPrefix begins the user names of Kubernetes' own components, kube-controller-manager for instance. API servers
	// authenticate no user of a cluster by such a name.
	componentPrefix = "system:kube-"
	systemNamespace = "kube-system"
)

// permission is what exempt service accounts may do, in CEL of admission policies and webhooks: verb bypass, granted by name. An account that has the other verb,
// which no role names, has every verb by a wildcard.
const permission = "authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('bypass').allowed() && !authorizer.group('stencil.kubevirt.io').resource('templateapprovals').check('any-verb').allowed()"

// Account is a service account.
type Account struct{ Namespace, Name string }

// User returns the user name of the account.
func (a Account) User() string { return accountPrefix + a.Namespace + ":" + a.Name }

// ParseAccount returns the service account of a user name. It returns false for other users.
func ParseAccount(user string) (Account, bool) {
	full, is := strings.CutPrefix(user, accountPrefix)
	namespace, name, two := strings.Cut(full, ":")
	return Account{namespace, name}, is && two && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// Names are the names of exempt users, as they are configured.
type Names struct {
	users Users
	// accounts have no namespace if they are exempt in any in which KubeVirt or CDI is installed.
	accounts []Account
	unknown  []string
}

var accountName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

// Parse reads names of users and of service accounts. ownNamespace is that of Stencil.
func Parse(names []string, ownNamespace string) Names {
	var n Names
	for _, name := range names {
		account, isAccount := ParseAccount(name)
		switch {
		case isAccount && (account.Namespace == systemNamespace || ownNamespace != "" && account.Namespace == ownNamespace), strings.HasPrefix(name, componentPrefix):
			n.users = append(n.users, name)
		case isAccount:
			n.accounts = append(n.accounts, account)
		case accountName.MatchString(name):
			n.accounts = append(n.accounts, Account{Name: name})
		default:
			n.unknown = append(n.unknown, name)
		}
	}
	return n
}

// Users returns the users who are exempt by their name alone.
func (n Names) Users() Users { return n.users }

// Account reports whether an account is exempt if KubeVirt or CDI runs as it.
func (n Names) Account(a Account) bool {
	return slices.Contains(n.accounts, a) || slices.Contains(n.accounts, Account{Name: a.Name})
}

// Accounts returns the names of service accounts, without namespace where none is configured, in the order in which they are configured.
func (n Names) Accounts() []Account { return slices.Clone(n.accounts) }

// Unknown returns names that cannot be those of a controller.
func (n Names) Unknown() []string { return slices.Clone(n.unknown) }

// Expression returns CEL that is true for requests of exempt users, for match conditions of webhooks. It is empty when no user is exempt.
// The chart has the same expression in its webhooks.
func (n Names) Expression() string {
	var terms []string
	if len(n.users) > 0 {
		terms = append(terms, "request.userInfo.username in "+list(n.users))
	}
	if len(n.accounts) > 0 {
		var written []string
		for _, account := range n.accounts {
			if account.Namespace == "" {
				written = append(written, account.Name)
			} else {
				written = append(written, account.User())
			}
		}
		terms = append(terms, "request.userInfo.username.startsWith('"+accountPrefix+"') && (request.userInfo.username in "+list(written)+
			" || request.userInfo.username.split(':')[3] in "+list(written)+") && "+permission)
	}
	return strings.Join(terms, " || ")
}

// list formats strings as a list in CEL.
func list(values []string) string {
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = strconv.Quote(value)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
