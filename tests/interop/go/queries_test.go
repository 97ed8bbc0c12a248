package interop

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The items of the query tests: five partitions, 23 keys.
const (
	ranges = 5
	oneKey = "device 7"
)

func readings() []item {
	items := make([]item, 150)
	for n := range items {
		items[n] = item{
			"id": fmt.Sprintf("%04d", n), "pk": fmt.Sprintf("device %d", n%23), "n": float64(n),
			"metric": float64(n*37%101) / 4, "kind": []string{"humidity", "pressure", "temperature"}[n%3], "on": n%2 == 0,
		}
	}
	return items
}

func (w *world) readings() (*azcosmos.ContainerClient, []item) {
	w.Helper()
	container, items := w.make(manual(6000*ranges), "/pk"), readings()
	for _, one := range items {
		must(container.CreateItem(ctx, text(one["pk"].(string)), encode(one), nil))(w)
	}
	return container, items
}

func keep(items []item, matches func(item) bool) []item {
	return slices.DeleteFunc(slices.Clone(items), func(one item) bool { return !matches(one) })
}

func ofOneKey(one item) bool { return one["pk"] == oneKey }

func ids(items []item) []any {
	all := make([]any, len(items))
	for at, one := range items {
		all[at] = one["id"]
	}
	return all
}

// everywhere is no key at all: the query reads every partition.
var everywhere = azcosmos.NewPartitionKey()

// ask returns all rows, page by page.
func (w *world) ask(c *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey, options *azcosmos.QueryOptions) []any {
	w.Helper()
	rows := []any{}
	for pager := c.NewQueryItemsPager(query, key, options); pager.More(); {
		rows = append(rows, rowsOf(w, must(pager.NextPage(ctx))(w))...)
	}
	return rows
}

func rowsOf(w *world, page azcosmos.QueryItemsResponse) []any {
	w.Helper()
	rows := make([]any, len(page.Items))
	for at, bytes := range page.Items {
		if err := json.Unmarshal(bytes, &rows[at]); err != nil {
			w.Fatal(err)
		}
	}
	return rows
}

func same(w *world, what string, got, wanted any) {
	w.Helper()
	if !reflect.DeepEqual(got, wanted) {
		w.Errorf("%s: got %v, wanted %v", what, got, wanted)
	}
}

func sorted(values []any) []any {
	values = slices.Clone(values)
	sort.Slice(values, func(a, b int) bool { return fmt.Sprint(values[a]) < fmt.Sprint(values[b]) })
	return values
}

// S101, S102, S104: filters within one key, and over every partition.
func TestS101S102S104Filters(t *testing.T) {
	filters := map[string]func(item) bool{
		"c.metric > 20":     func(c item) bool { return c["metric"].(float64) > 20 },
		"c.kind = @kind":    func(c item) bool { return c["kind"] == "humidity" },
		"c.on AND c.n < 50": func(c item) bool { return c["on"].(bool) && c["n"].(float64) < 50 },
		"STARTSWITH(c.id, '01') OR c.kind IN ('pressure')": func(c item) bool {
			return strings.HasPrefix(c["id"].(string), "01") || c["kind"] == "pressure"
		},
		"c.pk = 'device 7'": ofOneKey,
		"c.n = -1":          func(item) bool { return false },
	}
	overBoth(t, func(w *world) {
		container, items := w.readings()
		for filter, matches := range filters {
			options := &azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@kind", Value: "humidity"}}}
			query := "SELECT VALUE c.id FROM c WHERE " + filter
			same(w, filter, w.ask(container, query, text(oneKey), options), ids(keep(keep(items, ofOneKey), matches)))
			same(w, filter, sorted(w.ask(container, query, everywhere, options)), ids(keep(items, matches)))
		}
	})
}

// Within one key the server does all the work of a query.
func TestEveryClauseWithinOneKey(t *testing.T) {
	overBoth(t, func(w *world) {
		container, items := w.readings()
		ofKey := keep(items, ofOneKey)
		sum, least, kinds := 0.0, math.Inf(1), map[string]float64{}
		for _, one := range ofKey {
			sum += one["n"].(float64)
			least = min(least, one["metric"].(float64))
			kinds[one["kind"].(string)]++
		}
		backwards := ids(ofKey)
		slices.Reverse(backwards)
		ask := func(query string, size int32) []any {
			return w.ask(container, query, text(oneKey), &azcosmos.QueryOptions{PageSizeHint: size})
		}
		for _, size := range []int32{1, 2, 7, -1} {
			same(w, "ORDER BY", ask("SELECT VALUE c.id FROM c ORDER BY c.n DESC", size), backwards)
			same(w, "TOP", ask("SELECT TOP 3 VALUE c.id FROM c ORDER BY c.n DESC", size), backwards[:3])
			same(w, "LIMIT", ask("SELECT VALUE c.id FROM c ORDER BY c.n DESC OFFSET 1 LIMIT 2", size), backwards[1:3])
			same(w, "COUNT", ask("SELECT VALUE COUNT(1) FROM c", size), []any{float64(len(ofKey))})
			same(w, "AVG", ask("SELECT VALUE AVG(c.n) FROM c", size), []any{sum / float64(len(ofKey))})
			several := []any{item{"sum": sum, "least": least}}
			same(w, "several", ask("SELECT SUM(c.n) AS sum, MIN(c.metric) AS least FROM c", size), several)
			equal(w, len(ask("SELECT DISTINCT VALUE c.kind FROM c", size)), len(kinds))
			for _, row := range ask("SELECT c.kind, COUNT(1) AS many FROM c GROUP BY c.kind", size) {
				group := row.(item)
				same(w, "GROUP BY", group["many"], kinds[group["kind"].(string)])
			}
		}
	})
}

// S106: another client resumes from the token alone.
func TestS106AnotherClientResumes(t *testing.T) {
	overBoth(t, func(w *world) {
		container, _ := w.readings()
		for _, key := range []azcosmos.PartitionKey{text(oneKey), everywhere} {
			whole := w.ask(container, "SELECT VALUE c.id FROM c", key, nil)
			rows, token := []any{}, (*string)(nil)
			for {
				newContainer := must(w.connect(os.Getenv("PLEIAD_KEY")).NewContainer(w.database.ID(), container.ID()))(w)
				options := &azcosmos.QueryOptions{PageSizeHint: 7, ContinuationToken: token}
				page := must(newContainer.NewQueryItemsPager("SELECT VALUE c.id FROM c", key, options).NextPage(ctx))(w)
				rows = append(rows, rowsOf(w, page)...)
				if token = page.ContinuationToken; token == nil || *token == "" {
					break
				}
			}
			same(w, "rows", rows, whole)
		}
	})
}

// This SDK does not merge partitions and does not report that: the server returns 400 for a query that needs merging.
func TestQueriesThatNeedMergingAcrossPartitionsAre400(t *testing.T) {
	overBoth(t, func(w *world) {
		container, _ := w.readings()
		for _, query := range []string{
			"SELECT * FROM c ORDER BY c.n", "SELECT VALUE COUNT(1) FROM c", "SELECT DISTINCT VALUE c.kind FROM c",
			"SELECT c.kind FROM c GROUP BY c.kind", "SELECT TOP 3 * FROM c", "SELECT * FROM c OFFSET 1 LIMIT 2",
		} {
			refused[azcosmos.QueryItemsResponse](w, 400)(container.NewQueryItemsPager(query, everywhere, nil).NextPage(ctx))
		}
	})
}

// serverMerges requests that the server executes all of a query that spans partitions.
type serverMerges struct{}

func (serverMerges) Do(request *policy.Request) (*http.Response, error) {
	request.Raw().Header.Set("x-pleiad-cross-partition", "true")
	return request.Next()
}

// S108, S109: with one additional header, every query works across partitions.
func TestS108S109TheServerMergesPartitions(t *testing.T) {
	overBoth(t, func(w *world) {
		plain, items := w.readings()
		w.policies = []policy.Policy{serverMerges{}}
		container := must(w.connect(os.Getenv("PLEIAD_KEY")).NewContainer(w.database.ID(), plain.ID()))(w)
		backwards := ids(items)
		slices.Reverse(backwards)
		for _, size := range []int32{7, 100} {
			options := &azcosmos.QueryOptions{PageSizeHint: size}
			ask := func(query string) []any { return w.ask(container, query, everywhere, options) }
			same(w, "ORDER BY", ask("SELECT VALUE c.id FROM c ORDER BY c.n DESC"), backwards)
			same(w, "TOP", ask("SELECT TOP 10 VALUE c.id FROM c ORDER BY c.n DESC"), backwards[:10])
			same(w, "LIMIT", ask("SELECT VALUE c.id FROM c ORDER BY c.n DESC OFFSET 5 LIMIT 10"), backwards[5:15])
			same(w, "COUNT", ask("SELECT VALUE COUNT(1) FROM c"), []any{float64(len(items))})
			same(w, "DISTINCT", sorted(ask("SELECT DISTINCT VALUE c.kind FROM c")), []any{"humidity", "pressure", "temperature"})
			for _, row := range ask("SELECT c.kind, COUNT(1) AS many FROM c GROUP BY c.kind") {
				group := row.(item)
				members := keep(items, func(one item) bool { return one["kind"] == group["kind"] })
				same(w, "GROUP BY", group["many"], float64(len(members)))
			}
		}
	})
}

func TestQueryMetricsAndIndexMetrics(t *testing.T) {
	overBoth(t, func(w *world) {
		container, _ := w.readings()
		options := &azcosmos.QueryOptions{PopulateIndexMetrics: true}
		pager := container.NewQueryItemsPager("SELECT * FROM c WHERE c.metric > 10", text(oneKey), options)
		page := must(pager.NextPage(ctx))(w)
		indexes := must(base64.StdEncoding.DecodeString(*page.IndexMetrics))(w) // this SDK does not decode it
		if !strings.Contains(string(indexes), "/pk/?") {
			w.Errorf("index metrics: %s", indexes)
		}
		if page.QueryMetrics == nil || !strings.Contains(*page.QueryMetrics, "retrievedDocumentCount=") {
			w.Errorf("query metrics: %v", page.QueryMetrics)
		}
		if page.RequestCharge <= 0 {
			w.Errorf("charge: %v", page.RequestCharge)
		}
	})
}

func TestAnInvalidQueryIs400(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		codes := map[string]string{
			"SELECT * FORM c": "SC1001", "SELECT NO_SUCH(c.n) FROM c": "SC2005", "SELECT TOP @n * FROM c": "SC2060",
		}
		for query, code := range codes {
			_, err := container.NewQueryItemsPager(query, text("a"), nil).NextPage(ctx)
			refused[any](w, 400)(nil, err)
			if failure, ok := err.(*azcore.ResponseError); !ok || !strings.Contains(failure.Error(), code) {
				w.Errorf("%s: %v", query, err)
			}
		}
	})
}

// ReadManyItems reads partition by partition, with queries.
func TestReadManyItems(t *testing.T) {
	overBoth(t, func(w *world) {
		container, items := w.readings()
		identities := []azcosmos.ItemIdentity{{ID: "missing", PartitionKey: text(oneKey)}}
		for _, one := range items[:60] {
			identities = append(identities, azcosmos.ItemIdentity{ID: one["id"].(string), PartitionKey: text(one["pk"].(string))})
		}
		response := must(container.ReadManyItems(ctx, identities, nil))(w)
		found := make([]item, len(response.Items))
		for at, bytes := range response.Items {
			found[at] = decode(w, bytes)
		}
		same(w, "items", sorted(ids(found)), ids(items[:60]))
	})
}
