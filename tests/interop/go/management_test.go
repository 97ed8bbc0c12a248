package interop

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// manage sends a request to the management API (docs/management.md); an error response ends the test.
func manage(w *world, endpoint, method, path, body string) item {
	w.Helper()
	link, query, _ := strings.Cut("_pleiad/v1/"+path, "?")
	date := time.Now().UTC().Format(http.TimeFormat)
	key := must(base64.StdEncoding.DecodeString(os.Getenv("PLEIAD_KEY")))(w)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.ToLower(method) + "\npleiad\n" + link + "\n" + strings.ToLower(date) + "\n\n"))
	token := "type=master&ver=1.0&sig=" + base64.StdEncoding.EncodeToString(mac.Sum(nil))

	address := strings.TrimSuffix(endpoint, "/") + "/" + link + "?" + query
	request := must(http.NewRequestWithContext(ctx, method, address, strings.NewReader(body)))(w)
	request.Header.Set("x-ms-date", date)
	request.Header.Set("authorization", url.QueryEscape(token))
	response := must(http.DefaultClient.Do(request))(w)
	defer response.Body.Close()
	text := must(io.ReadAll(response.Body))(w)
	if response.StatusCode >= 300 {
		w.Fatalf("%s %s: %d %s", method, path, response.StatusCode, text)
	}
	var value item
	_ = json.Unmarshal(text, &value) // some responses have no body
	return value
}

// split splits the container's largest partition and returns when it has happened.
func (w *world) split(container *azcosmos.ContainerClient) {
	w.Helper()
	path := "containers/" + w.database.ID() + "/" + container.ID() + "/partitions/split?wait=true"
	manage(w, os.Getenv("PLEIAD_ENDPOINT"), http.MethodPost, path, "{}")
}
