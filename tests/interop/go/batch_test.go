package interop

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// S114: all operations or none.
func TestS114ATransactionalBatch(t *testing.T) {
	overBoth(t, func(w *world) {
		container, key := w.make(nil, "/pk"), text("a")
		must(container.CreateItem(ctx, key, encode(item{"id": "old", "pk": "a", "n": 1}), nil))(w)
		batch := container.NewTransactionalBatch(key)
		batch.CreateItem(encode(item{"id": "new", "pk": "a"}), nil)
		batch.ReplaceItem("old", encode(item{"id": "old", "pk": "a", "n": 2}), nil)
		batch.ReadItem("old", nil)
		more := azcosmos.PatchOperations{}
		more.AppendIncrement("/n", 5)
		batch.PatchItem("old", more, nil)
		batch.DeleteItem("new", nil)
		done := must(container.ExecuteTransactionalBatch(ctx, batch, &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: true}))(w)
		equal(w, done.Success, true)
		for at, status := range []int32{201, 200, 200, 200, 204} {
			equal(w, done.OperationResults[at].StatusCode, status)
		}
		equal(w, decode(w, done.OperationResults[2].ResourceBody)["n"], any(2.0))
		equal(w, w.read(container, key, "old")["n"], any(7.0))

		batch = container.NewTransactionalBatch(key)
		batch.DeleteItem("old", nil)
		batch.ReadItem("missing", nil)
		failed := must(container.ExecuteTransactionalBatch(ctx, batch, nil))(w)
		equal(w, failed.Success, false)
		equal(w, failed.OperationResults[0].StatusCode, 424)
		equal(w, failed.OperationResults[1].StatusCode, 404)
		equal(w, w.read(container, key, "old")["n"], any(7.0))
	})
}

func TestPatch(t *testing.T) {
	overBoth(t, func(w *world) {
		container, key := w.make(nil, "/pk"), text("a")
		must(container.CreateItem(ctx, key, encode(item{"id": "x", "pk": "a", "n": 1, "removed": true}), nil))(w)
		change := azcosmos.PatchOperations{}
		change.AppendAdd("/color", "red")
		change.AppendIncrement("/n", 2)
		change.AppendRemove("/removed")
		must(container.PatchItem(ctx, key, "x", change, nil))(w)
		read := w.read(container, key, "x")
		equal(w, read["color"], any("red"))
		equal(w, read["n"], any(3.0))
		equal(w, read["removed"], nil)

		conditional := azcosmos.PatchOperations{}
		conditional.SetCondition("from c where c.n = 1")
		conditional.AppendSet("/n", 0)
		refused[azcosmos.ItemResponse](w, 412)(container.PatchItem(ctx, key, "x", conditional, nil))
		broken := azcosmos.PatchOperations{}
		broken.AppendReplace("/missing", 1)
		refused[azcosmos.ItemResponse](w, 400)(container.PatchItem(ctx, key, "x", broken, nil))
		equal(w, w.read(container, key, "x")["n"], any(3.0))
	})
}
