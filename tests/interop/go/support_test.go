// Package interop runs the official Go SDK against Pleiad, over http and over https.
//
// xtask starts the server; PLEIAD_ENDPOINT, PLEIAD_ENDPOINT_HTTPS, PLEIAD_KEY and PLEIAD_CA_FILE say where it is. The
// SDK is the published one, unmodified. Only this file creates clients.
package interop

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var ctx = context.Background()

type item = map[string]any

// world is what a test gets: a client, and a database that is deleted when the test has finished.
type world struct {
	*testing.T
	scheme   string
	quiet    bool            // new clients request no content after a write
	policies []policy.Policy // and use these policies
	client   *azcosmos.Client
	database *azcosmos.DatabaseClient
}

// overBoth runs the body once per scheme, each time in a new world.
func overBoth(t *testing.T, body func(w *world)) {
	for scheme, variable := range map[string]string{"http": "PLEIAD_ENDPOINT", "https": "PLEIAD_ENDPOINT_HTTPS"} {
		t.Run(scheme, func(t *testing.T) {
			if os.Getenv(variable) == "" {
				t.Skipf("%s is not set", variable)
			}
			w := &world{T: t, scheme: scheme}
			w.client = w.connect(os.Getenv("PLEIAD_KEY"))
			name := unique("go")
			must(w.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil))(w)
			w.database = must(w.client.NewDatabase(name))(w)
			t.Cleanup(func() { must(w.database.Delete(ctx, nil))(w) })
			body(w)
		})
	}
}

// connect creates a separate client, with its own caches.
func (w *world) connect(key string) *azcosmos.Client {
	w.Helper()
	endpoint, options := w.clientOptions()
	return must(azcosmos.NewClientWithKey(endpoint, must(azcosmos.NewKeyCredential(key))(w), options))(w)
}

// clientOptions returns the endpoint and the options of clients.
func (w *world) clientOptions() (string, *azcosmos.ClientOptions) {
	w.Helper()
	endpoint, options := os.Getenv("PLEIAD_ENDPOINT"), &azcosmos.ClientOptions{EnableContentResponseOnWrite: !w.quiet}
	options.PerCallPolicies = w.policies
	if w.scheme == "https" {
		endpoint = os.Getenv("PLEIAD_ENDPOINT_HTTPS")
		options.Transport = trustingClient(w)
	}
	return endpoint, options
}

func (w *world) key() string { return os.Getenv("PLEIAD_KEY") }

// trustingClient is an HTTP client that trusts only the server's CA.
func trustingClient(w *world) *http.Client {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(must(os.ReadFile(os.Getenv("PLEIAD_CA_FILE")))(w)) {
		w.Fatal("PLEIAD_CA_FILE contains no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport}
}

// make creates a fresh container with these key paths; more than one path is a hierarchical key.
func (w *world) make(throughput *azcosmos.ThroughputProperties, paths ...string) *azcosmos.ContainerClient {
	w.Helper()
	container, err := w.tryMake(throughput, paths...)
	return must(container, err)(w)
}

func (w *world) tryMake(throughput *azcosmos.ThroughputProperties, paths ...string) (*azcosmos.ContainerClient, error) {
	properties := azcosmos.ContainerProperties{
		ID:                     unique("c"),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: paths, Version: 2},
	}
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: throughput}
	if _, err := w.database.CreateContainer(ctx, properties, options); err != nil {
		return nil, err
	}
	return w.database.NewContainer(properties.ID)
}

func manual(throughput int32) *azcosmos.ThroughputProperties {
	properties := azcosmos.NewManualThroughputProperties(throughput)
	return &properties
}

func unique(prefix string) string {
	random := make([]byte, 6)
	_, _ = rand.Read(random)
	return prefix + "-" + hex.EncodeToString(random)
}

// must unwraps a result or ends the test: must(call())(w).
func must[T any](value T, err error) func(w *world) T {
	return func(w *world) T {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return value
	}
}

// refused checks that a call failed with this status: refused(w, 404)(call()).
func refused[T any](w *world, status int) func(T, error) {
	w.Helper()
	return func(_ T, err error) {
		w.Helper()
		var failure *azcore.ResponseError
		switch {
		case err == nil:
			w.Errorf("expected an error with %d", status)
		case !errors.As(err, &failure):
			w.Errorf("expected an error with %d, got %v", status, err)
		case failure.StatusCode != status:
			w.Errorf("expected an error with %d, got %d: %v", status, failure.StatusCode, err)
		}
	}
}

func encode(value item) []byte {
	bytes, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return bytes
}

func decode(w *world, bytes []byte) item {
	w.Helper()
	var value item
	if err := json.Unmarshal(bytes, &value); err != nil {
		w.Fatalf("%v in %q", err, bytes)
	}
	return value
}

func (w *world) read(c *azcosmos.ContainerClient, key azcosmos.PartitionKey, id string) item {
	w.Helper()
	return decode(w, must(c.ReadItem(ctx, key, id, nil))(w).Value)
}

func text(value string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(value) }

func equal[T comparable](w *world, got, wanted T) {
	w.Helper()
	if got != wanted {
		w.Errorf("got %v, wanted %v", got, wanted)
	}
}
