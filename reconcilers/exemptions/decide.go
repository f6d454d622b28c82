package exemptions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vmstencil/stencil/internal/exemption"
)

// Accounts of every version of KubeVirt and CDI, which are also the names of the ClusterRoleBindings that bind them.
const (
	kubevirtAccount = "kubevirt-controller"
	cdiAccount      = "cdi-sa"
)

// Prefixes of the account names of each component.
const (
	kubevirtPrefix = "kubevirt-"
	cdiPrefix      = "cdi-"
)

// components holds the namespaces in which KubeVirt and CDI are installed.
type components struct {
	kubevirt, cdi []string
	// unbound are namespaces with a KubeVirt object and without a bound account, if KubeVirt is installed in no other.
	unbound []string
}

// locate returns where KubeVirt and CDI are installed. kubevirts are the namespaces with a KubeVirt object; bound are the namespaces of
// the accounts that a ClusterRoleBinding binds, by the name of both.
func locate(kubevirts []string, bound map[string][]string) components {
	c := components{cdi: bound[cdiAccount]}
	for _, namespace := range kubevirts {
		if slices.Contains(bound[kubevirtAccount], namespace) {
			c.kubevirt = append(c.kubevirt, namespace)
		}
	}
	if len(c.kubevirt) == 0 {
		c.unbound = kubevirts
	}
	return c
}

// candidates returns the accounts that are exempt if they exist.
func (c components) candidates(names exemption.Names) []exemption.Account {
	var all []exemption.Account
	for _, account := range names.Accounts() {
		namespaces := c.kubevirt
		if strings.HasPrefix(account.Name, cdiPrefix) {
			namespaces = c.cdi
		}
		for _, namespace := range namespaces {
			if account.Namespace == "" || account.Namespace == namespace {
				all = append(all, exemption.Account{Namespace: namespace, Name: account.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b exemption.Account) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all)
}

// problem is a configured name that exempts no user.
type problem struct{ user, cause string }

func (p problem) String() string { return p.user + ": " + p.cause }

// plan is the result of decide.
type plan struct {
	// exempt are the accounts, sorted by namespace and name.
	exempt   []exemption.Account
	problems []problem
	// complete is false while KubeVirt or CDI, or one of their accounts, is missing. They may be installed later.
	complete bool
}

// decide returns the exempt accounts and the problems. existing are the candidates that exist.
func decide(names exemption.Names, c components, existing []exemption.Account) plan {
	p := plan{exempt: existing, complete: true}
	if len(c.unbound) > 0 {
		p.problems = append(p.problems, problem{kubevirtAccount, fmt.Sprintf(
			"there is a KubeVirt object in namespace %s, but ClusterRoleBinding %s does not bind service account %s there: wait until virt-operator has installed KubeVirt",
			strings.Join(c.unbound, ", "), kubevirtAccount, kubevirtAccount)})
	}
	for _, account := range names.Accounts() {
		found := slices.ContainsFunc(existing, func(a exemption.Account) bool {
			return a.Name == account.Name && (account.Namespace == "" || a.Namespace == account.Namespace)
		})
		if found {
			continue
		}
		p.complete = false
		if cause := c.missing(account); cause != "" {
			user := account.Name
			if account.Namespace != "" {
				user = account.User()
			}
			p.problems = append(p.problems, problem{user, cause})
		}
	}
	for _, name := range names.Unknown() {
		p.problems = append(p.problems, problem{name, "it is the name of no service account: exempt other users with exemptSubjects of the TemplateApprovals"})
	}
	return p
}

const otherControllers = "; exempt controllers other than KubeVirt's and CDI's with exemptSubjects of the TemplateApprovals"

// missing returns why an account that was not found is a problem; empty if it is not one. A missing account is normal if KubeVirt or CDI is
// not installed, or if the installed version does not have it.
func (c components) missing(account exemption.Account) string {
	component, namespaces := "KubeVirt", c.kubevirt
	if strings.HasPrefix(account.Name, cdiPrefix) {
		component, namespaces = "CDI", c.cdi
	}
	known := strings.HasPrefix(account.Name, kubevirtPrefix) || strings.HasPrefix(account.Name, cdiPrefix)
	switch {
	case account.Namespace == "" && known:
		return ""
	case account.Namespace == "" || slices.Contains(namespaces, account.Namespace):
		return "there is no such service account in the namespace of " + component + ": remove the name from exemptUsers" + otherControllers
	default:
		return fmt.Sprintf("%s is not installed in namespace %s: write the name without a namespace, %s", component, account.Namespace, account.Name) + otherControllers
	}
}
