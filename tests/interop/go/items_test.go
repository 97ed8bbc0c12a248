package interop

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// S95, S97, S98, S100: the sample document of the 2016 article.
func TestS95S97S98S100CreateReadReplaceDelete(t *testing.T) {
	overBoth(t, func(w *world) {
		container, key, id := w.make(nil, "/deviceId"), text("XMS-0001"), "XMS-001-FE24C"
		reading := item{
			"id": id, "deviceId": "XMS-0001", "metricType": "Temperature", "unit": "Fahrenheit",
			"metricValue": 105.00, "readingTime": "2016-01-20T10:30:00.000Z",
		}
		created := must(container.CreateItem(ctx, key, encode(reading), nil))(w)
		equal(w, created.RawResponse.StatusCode, 201)
		read := w.read(container, key, id)
		for name, value := range reading {
			equal(w, read[name], value)
		}
		reading["metricValue"] = 104.0
		must(container.ReplaceItem(ctx, key, id, encode(reading), nil))(w)
		equal(w, w.read(container, key, id)["metricValue"], any(104.0))

		must(container.DeleteItem(ctx, key, id, nil))(w)
		refused[azcosmos.ItemResponse](w, 404)(container.ReadItem(ctx, key, id, nil))
		refused[azcosmos.ItemResponse](w, 404)(container.DeleteItem(ctx, key, id, nil))
	})
}

func TestUpsertCreatesThenReplaces(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		first := must(container.UpsertItem(ctx, text("a"), encode(item{"id": "x", "pk": "a", "n": 1}), nil))(w)
		second := must(container.UpsertItem(ctx, text("a"), encode(item{"id": "x", "pk": "a", "n": 2}), nil))(w)
		equal(w, first.RawResponse.StatusCode, 201)
		equal(w, second.RawResponse.StatusCode, 200)
		equal(w, w.read(container, text("a"), "x")["n"], any(2.0))
	})
}

// S12, S13: key and ID together are the identity.
func TestS12S13Identity(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		for _, one := range [][2]string{{"Marketing", "0001"}, {"Marketing", "0002"}, {"Sales", "0001"}} {
			must(container.CreateItem(ctx, text(one[0]), encode(item{"id": one[1], "pk": one[0]}), nil))(w)
		}
		again := encode(item{"id": "0001", "pk": "Marketing"})
		refused[azcosmos.ItemResponse](w, 409)(container.CreateItem(ctx, text("Marketing"), again, nil))
		equal(w, w.read(container, text("Sales"), "0001")["pk"], any("Sales"))
		refused[azcosmos.ItemResponse](w, 404)(container.ReadItem(ctx, text("Other"), "0001", nil))
	})
}

// S11, S16, S95: a write needs an ID, and a key that matches its body.
func TestS11S16S95InvalidWritesAre400(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		refused[azcosmos.ItemResponse](w, 400)(container.CreateItem(ctx, text("a"), encode(item{"pk": "a"}), nil))
		otherKey := encode(item{"id": "x", "pk": "b"})
		refused[azcosmos.ItemResponse](w, 400)(container.CreateItem(ctx, text("a"), otherKey, nil))
		must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w)
		refused[azcosmos.ItemResponse](w, 400)(container.ReplaceItem(ctx, text("a"), "x", otherKey, nil))
	})
}

// S10: a key may be a string, a number, a boolean or null.
func TestS10KeyTypes(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		keys := []struct {
			key   azcosmos.PartitionKey
			value any
		}{
			{text(""), ""}, {text("7"), "7"}, {text("é 日本"), "é 日本"}, {azcosmos.NewPartitionKeyNumber(7), 7.0},
			{azcosmos.NewPartitionKeyNumber(-1.5), -1.5}, {azcosmos.NewPartitionKeyBool(true), true},
			{azcosmos.NewPartitionKeyBool(false), false}, {azcosmos.NullPartitionKey, nil},
		}
		for _, one := range keys {
			must(container.CreateItem(ctx, one.key, encode(item{"id": "x", "pk": one.value}), nil))(w)
		}
		for _, one := range keys {
			equal(w, w.read(container, one.key, "x")["pk"], one.value)
		}
	})
}

func TestHierarchicalKeys(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(manual(18000), "/tenant", "/user", "/session")
		key := func(n int) azcosmos.PartitionKey {
			return text(fmt.Sprint("tenant ", n%7)).AppendNumber(float64(n)).AppendNull()
		}
		for n := range 40 {
			body := encode(item{"id": "x", "tenant": fmt.Sprint("tenant ", n%7), "user": n, "session": nil, "n": n})
			must(container.CreateItem(ctx, key(n), body, nil))(w)
		}
		for n := range 40 {
			equal(w, w.read(container, key(n), "x")["n"], any(float64(n)))
		}
		refused[azcosmos.ItemResponse](w, 400)(container.ReadItem(ctx, text("tenant 0"), "x", nil))
	})
}

func TestIfMatch(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		etag := must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w).ETag
		unchanged := &azcosmos.ItemOptions{IfMatchEtag: &etag}
		must(container.ReplaceItem(ctx, text("a"), "x", encode(item{"id": "x", "pk": "a", "n": 1}), unchanged))(w)
		second := encode(item{"id": "x", "pk": "a", "n": 2})
		refused[azcosmos.ItemResponse](w, 412)(container.ReplaceItem(ctx, text("a"), "x", second, unchanged))
		refused[azcosmos.ItemResponse](w, 412)(container.DeleteItem(ctx, text("a"), "x", unchanged))
		anyVersion := azcore.ETagAny
		must(container.DeleteItem(ctx, text("a"), "x", &azcosmos.ItemOptions{IfMatchEtag: &anyVersion}))(w)
	})
}

func TestIDsInAnyScript(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		ids := []string{"a b", "é", "日本語", "😀", "!@$%^&*()-~`'_[]{}|;:,.<>", "a%20b", "a+b", "a=b&c=d", `"quoted"`}
		for _, id := range ids {
			must(container.CreateItem(ctx, text("a"), encode(item{"id": id, "pk": "a"}), nil))(w)
		}
		for _, id := range ids {
			equal(w, w.read(container, text("a"), id)["id"], any(id))
			must(container.DeleteItem(ctx, text("a"), id, nil))(w)
		}
	})
}

func TestItemsUpTo2MB(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		large := func(bytes int) []byte {
			return encode(item{"id": "x", "pk": "a", "pad": strings.Repeat("x", bytes)})
		}
		must(container.CreateItem(ctx, text("a"), large(2<<20-1024), nil))(w)
		equal(w, len(w.read(container, text("a"), "x")["pad"].(string)), 2<<20-1024)
		refused[azcosmos.ItemResponse](w, 413)(container.UpsertItem(ctx, text("a"), large(2<<20+1024), nil))
	})
}

// S87, S88: every response has a charge, and a read of 1 KB costs 1.
func TestS87S88Charges(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		// About 300 bytes are left for the server's own properties.
		body := encode(item{"id": "x", "pk": "a", "pad": strings.Repeat("x", 724)})
		written := must(container.CreateItem(ctx, text("a"), body, nil))(w)
		read := must(container.ReadItem(ctx, text("a"), "x", nil))(w)
		equal(w, fmt.Sprintf("%.2f", read.RequestCharge), "1.00")
		if written.RequestCharge <= read.RequestCharge {
			w.Errorf("writing cost %v", written.RequestCharge)
		}
	})
}

// By default this SDK requests no content after a write; the clients of these tests do, unless a test changes that.
func TestWritesWithoutContentHaveNoBody(t *testing.T) {
	overBoth(t, func(w *world) {
		w.quiet = true
		quiet := must(w.connect(os.Getenv("PLEIAD_KEY")).NewContainer(w.database.ID(), w.make(nil, "/pk").ID()))(w)
		created := must(quiet.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w)
		equal(w, len(created.Value), 0)
		equal(w, any(string(created.ETag)), w.read(quiet, text("a"), "x")["_etag"])
	})
}

func TestSessionTokens(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		written := must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w)
		read := must(container.ReadItem(ctx, text("a"), "x", &azcosmos.ItemOptions{SessionToken: written.SessionToken}))(w)
		equal(w, *read.SessionToken, *written.SessionToken)
	})
}

func TestJSONIsReadUnchanged(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		value := []any{nil, true, false, 0.0, -1.5, 1e300, 5e-324, "", "q\"\\/\b\f\n\r\t\x00\x1f\u2028", "日本 😀", []any{}, item{}, item{"": item{"a.b": []any{1.0}}}}
		must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a", "value": value}), nil))(w)
		if read := w.read(container, text("a"), "x")["value"]; !reflect.DeepEqual(read, any(value)) {
			w.Errorf("wrote %v, read %v", value, read)
		}
	})
}

func TestAThousandConcurrentRequests(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(manual(18000), "/pk")
		key := func(n int) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyNumber(float64(n)) }
		concurrently(1000, func(n int) {
			_, err := container.CreateItem(ctx, key(n), encode(item{"id": strconv.Itoa(n), "pk": n}), nil)
			if err != nil {
				w.Error(err)
			}
		})
		concurrently(1000, func(n int) {
			if _, err := container.ReadItem(ctx, key(n), strconv.Itoa(n), nil); err != nil {
				w.Error(err)
			}
		})
	})
}

func concurrently(count int, call func(n int)) {
	var all sync.WaitGroup
	for n := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			call(n)
		}()
	}
	all.Wait()
}

func TestARecreatedContainerIsEmpty(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w)
		properties := must(container.Read(ctx, nil))(w).ContainerProperties
		must(container.Delete(ctx, nil))(w)
		must(w.database.CreateContainer(ctx, azcosmos.ContainerProperties{
			ID: properties.ID, PartitionKeyDefinition: properties.PartitionKeyDefinition,
		}, nil))(w)
		refused[azcosmos.ItemResponse](w, 404)(container.ReadItem(ctx, text("a"), "x", nil))
		must(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a"}), nil))(w)
	})
}
