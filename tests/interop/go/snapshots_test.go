package interop

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A client works across restores of the whole account and sees a copy of its database, whatever it has cached. This
// test uses a separate server: a restore replaces all data of the account.
func TestRestoresAndCopiesHaveTheSameData(t *testing.T) {
	endpoint := os.Getenv("PLEIAD_ENDPOINT_RESTORED")
	if endpoint == "" {
		t.Skip("no server for restores was given")
	}
	w := &world{T: t, scheme: "http"}
	client := must(azcosmos.NewClientWithKey(endpoint, must(azcosmos.NewKeyCredential(w.key()))(w), nil))(w)
	name, snapshot, copied := unique("go"), unique("clean"), unique("copy")
	must(client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil))(w)
	w.database = must(client.NewDatabase(name))(w)
	t.Cleanup(func() { must(w.database.Delete(ctx, nil))(w) })
	orders := w.make(manual(400), "/pk")
	for n := range 20 {
		w.create(orders, item{"id": fmt.Sprint(n), "pk": fmt.Sprint(n % 5), "n": n})
	}
	manage(w, endpoint, http.MethodPut, "snapshots/"+snapshot, "")
	t.Cleanup(func() { manage(w, endpoint, http.MethodDelete, "snapshots/"+snapshot, "") })

	for round := range 6 {
		w.create(orders, item{"id": "100", "pk": "0", "n": 100})
		must(orders.DeleteItem(ctx, text("2"), "2", nil))(w)
		if round%2 == 1 {
			path := "containers/" + name + "/" + orders.ID() + "/partitions/split?wait=true"
			manage(w, endpoint, http.MethodPost, path, "{}")
		}
		manage(w, endpoint, http.MethodPost, "snapshots/"+snapshot+"/restore", "")
		twentyOrders(w, orders)
	}
	manage(w, endpoint, http.MethodPost, "databases/"+name+"/copy?wait=true", `{"to":"`+copied+`"}`)
	twentyOrders(w, must(client.NewContainer(copied, orders.ID()))(w))
	must(must(client.NewDatabase(copied))(w).Delete(ctx, nil))(w)
}

// twentyOrders checks that these items exist, by query and by point reads.
func twentyOrders(w *world, orders *azcosmos.ContainerClient) {
	w.Helper()
	equal(w, len(w.ask(orders, "SELECT * FROM c", everywhere, nil)), 20)
	for n := range 20 {
		equal(w, int(w.read(orders, text(fmt.Sprint(n%5)), fmt.Sprint(n))["n"].(float64)), n)
	}
}
