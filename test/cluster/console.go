package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	clientwebsocket "k8s.io/client-go/transport/websocket"

	"github.com/vmstencil/stencil/test/controlplane"
	"github.com/vmstencil/stencil/test/deadline"
)

// consoleProtocol is the protocol of KubeVirt's streams.
const consoleProtocol = "plain.kubevirt.io"

// Console is a connection to the serial console of a VM.
type Console struct {
	connection *websocket.Conn

	mutex sync.Mutex
	text  strings.Builder
	// seen is the part of the text that Await has passed.
	seen int
	err  error
}

// Console connects a user to the serial console of a running VM.
func (c *Cluster) Console(ctx context.Context, as *controlplane.User, namespace, name string) (*Console, error) {
	config := as.Config()
	transport, holder, err := clientwebsocket.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	address := config.Host + "/apis/subresources.kubevirt.io/v1/namespaces/" + namespace + "/virtualmachineinstances/" + name + "/console"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	connection, err := clientwebsocket.Negotiate(transport, holder, request, consoleProtocol)
	if err != nil {
		return nil, fmt.Errorf("connecting to the console of %s: %w", name, err)
	}
	console := &Console{connection: connection}
	go console.read()
	return console, nil
}

func (c *Console) read() {
	for {
		_, content, err := c.connection.ReadMessage()
		c.mutex.Lock()
		c.text.Write(content)
		c.err = err
		c.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

// Close ends the connection.
func (c *Console) Close() error { return c.connection.Close() }

// controls are the characters that a shell sends to a terminal beside text.
var controls = regexp.MustCompile("\r|\x1b\\[[0-9;?]*[A-Za-z]")

// Text returns the text that the console has printed.
func (c *Console) Text() string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return controls.ReplaceAllString(c.text.String(), "")
}

// Send types text.
func (c *Console) Send(text string) error {
	return c.connection.WriteMessage(websocket.BinaryMessage, []byte(text))
}

// Await waits until the console prints text, after what earlier calls have waited for.
func (c *Console) Await(ctx context.Context, text string, limit time.Duration) error {
	return deadline.Wait(ctx, fmt.Sprintf("the console prints %q", text), limit, func(context.Context) error {
		all := c.Text()
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if at := strings.Index(all[min(c.seen, len(all)):], text); at >= 0 {
			c.seen += at + len(text)
			return nil
		}
		if c.err != nil && !errors.Is(c.err, io.EOF) {
			return fmt.Errorf("the connection ended: %w", c.err)
		}
		return fmt.Errorf("it has printed:\n%s", all)
	})
}

// LogIn logs a user in, and runs a command of the guest.
func (c *Console) LogIn(ctx context.Context, user, password string, limit time.Duration) error {
	// The guest may have printed its prompt before.
	if err := c.Send("\n"); err != nil {
		return fmt.Errorf("typing at the console: %w", err)
	}
	for _, step := range []struct{ want, send string }{
		{"login:", user + "\n"}, {"assword:", password + "\n"}, {"$ ", "id; uname -a\n"}, {"uid=1000(" + user + ")", ""}, {"$ ", ""},
	} {
		if err := c.Await(ctx, step.want, limit); err != nil {
			return err
		}
		if err := c.Send(step.send); err != nil {
			return fmt.Errorf("typing at the console: %w", err)
		}
	}
	return nil
}

// passwordPattern is the password in the user data of the example.
var passwordPattern = regexp.MustCompile(`(?m)^ *password: (\S+)$`)

// GeneratedPassword returns the password in the user data of a VM, as its owner reads it.
func (c *Cluster) GeneratedPassword(ctx context.Context, as *controlplane.User, namespace, name string) (string, error) {
	result, err := c.Plane.Kubectl(ctx, as, "", "get", "virtualmachine", name, "--namespace="+namespace, `--output=jsonpath={.spec.template.spec.volumes[?(@.name=="init")].cloudInitNoCloud.userData}`)
	if err != nil {
		return "", err
	}
	found := passwordPattern.FindStringSubmatch(result.Stdout)
	if found == nil {
		return "", fmt.Errorf("the user data of %s has no password: %s%s", name, result.Stdout, result.Stderr)
	}
	return found[1], nil
}
