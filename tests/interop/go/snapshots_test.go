package interop

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// One client goes on over restores of the whole account and sees a copy of its database, whatever it has cached. The
// server is one of its own: a restore takes everybody's data back.
func TestRestoresAndCopiesGiveTheSameData(t *testing.T) {
	endpoint := os.Getenv("PLEIAD_ENDPOINT_RESTORED")
	if endpoint == "" {
		t.Skip("no server that may be restored was given")
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

// twentyOrders checks that these are there, by query and one by one.
func twentyOrders(w *world, orders *azcosmos.ContainerClient) {
	w.Helper()
	equal(w, len(w.ask(orders, "SELECT * FROM c", everywhere, nil)), 20)
	for n := range 20 {
		equal(w, int(w.read(orders, text(fmt.Sprint(n%5)), fmt.Sprint(n))["n"].(float64)), n)
	}
}
