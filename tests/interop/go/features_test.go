package interop

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// Features of a container, over several partitions and after a split. This SDK supports neither computed properties,
// nor global secondary indexes, nor users and permissions, nor the feed of all versions. Queries that need merging it
// can run only within one key, where the server does all the work.

func (w *world) define(throughput int32, more func(*azcosmos.ContainerProperties)) *azcosmos.ContainerClient {
	w.Helper()
	properties := azcosmos.ContainerProperties{
		ID:                     unique("c"),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
	more(&properties)
	options := &azcosmos.CreateContainerOptions{ThroughputProperties: manual(throughput)}
	must(w.database.CreateContainer(ctx, properties, options))(w)
	return must(w.database.NewContainer(properties.ID))(w)
}

func (w *world) create(c *azcosmos.ContainerClient, body item) {
	w.Helper()
	must(c.CreateItem(ctx, text(body["pk"].(string)), encode(body), nil))(w)
}

// searchable is a container with 60 items under three keys, each with a vector and a text.
func (w *world) searchable() *azcosmos.ContainerClient {
	w.Helper()
	container := w.define(12000, func(properties *azcosmos.ContainerProperties) {
		properties.VectorEmbeddingPolicy = &azcosmos.VectorEmbeddingPolicy{VectorEmbeddings: []azcosmos.VectorEmbedding{{
			Path: "/v", DataType: azcosmos.VectorDataTypeFloat32, Dimensions: 2,
			DistanceFunction: azcosmos.VectorDistanceFunctionEuclidean,
		}}}
		properties.FullTextPolicy = &azcosmos.FullTextPolicy{
			DefaultLanguage: "en-US", FullTextPaths: []azcosmos.FullTextPath{{Path: "/text", Language: "en-US"}},
		}
		properties.IndexingPolicy = &azcosmos.IndexingPolicy{
			Automatic: true, IndexingMode: azcosmos.IndexingModeConsistent,
			IncludedPaths:   []azcosmos.IncludedPath{{Path: "/*"}},
			ExcludedPaths:   []azcosmos.ExcludedPath{{Path: "/v/*"}},
			VectorIndexes:   []azcosmos.VectorIndex{{Path: "/v", Type: azcosmos.VectorIndexTypeDiskANN}},
			FullTextIndexes: []azcosmos.FullTextIndex{{Path: "/text"}},
		}
	})
	for n := range 60 {
		words := strings.Repeat("apple ", n%4) + strings.Repeat("brick ", n%3) + strings.Repeat("filler ", n%7)
		w.create(container, item{"id": fmt.Sprint(n), "pk": fmt.Sprintf("key %d", n%3), "n": n, "v": []int{n, n * n % 31}, "text": words})
	}
	return container
}

func TestVectorSearchWithinOneKey(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.searchable()
		expected := []float64{}
		for n := 1; n < 60; n += 3 {
			expected = append(expected, math.Hypot(float64(n-20), float64(n*n%31-7)))
		}
		sort.Float64s(expected)
		query := "SELECT TOP 8 VectorDistance(c.v, [20, 7]) AS d FROM c ORDER BY VectorDistance(c.v, [20, 7])"
		for range 3 {
			rows := w.ask(container, query, text("key 1"), nil)
			equal(w, len(rows), 8)
			for at, row := range rows {
				if math.Abs(row.(item)["d"].(float64)-expected[at]) > 1e-6 {
					w.Errorf("row %d has distance %v, not %v", at, row, expected[at])
				}
			}
			w.split(container)
		}
		read := must(container.Read(ctx, nil))(w).ContainerProperties
		equal(w, read.VectorEmbeddingPolicy.VectorEmbeddings[0].DistanceFunction, azcosmos.VectorDistanceFunctionEuclidean)
		equal(w, read.IndexingPolicy.VectorIndexes[0].Type, azcosmos.VectorIndexTypeDiskANN)
	})
}

func TestFullTextOverAllPartitionsAndRankingWithinOneKey(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.searchable()
		both := "SELECT c.id FROM c WHERE FullTextContainsAll(c.text, 'apple', 'brick')"
		ranked := "SELECT TOP 60 c.n FROM c WHERE FullTextContains(c.text, 'apple') ORDER BY RANK FullTextScore(c.text, 'apple')"
		for range 2 {
			equal(w, len(w.ask(container, both, everywhere, nil)), 30)
			rows := w.ask(container, ranked, text("key 1"), nil)
			equal(w, len(rows), 15)
			last := math.Inf(1)
			for _, row := range rows {
				score := appleScore(int(row.(item)["n"].(float64)))
				if score > last+1e-9 {
					w.Errorf("%v follows a row with a lower score", row)
				}
				last = score
			}
			w.split(container)
		}
		refused[azcosmos.QueryItemsResponse](w, 400)(
			container.NewQueryItemsPager(ranked+" DESC", text("key 1"), nil).NextPage(ctx))
	})
}

// appleScore is BM25 (k1 1.2, b 0.75) without the factor that all documents have in common.
func appleScore(n int) float64 {
	total, count := 0, float64(n%4)
	for other := range 60 {
		total += other%4 + other%3 + other%7
	}
	length := float64(n%4 + n%3 + n%7)
	return count * 2.2 / (count + 1.2*(0.25+0.75*length/(float64(total)/60)))
}

func TestItemsExpire(t *testing.T) {
	overBoth(t, func(w *world) {
		three := int32(3)
		container := w.define(12000, func(p *azcosmos.ContainerProperties) { p.DefaultTimeToLive = &three })
		for n := range 10 {
			key := fmt.Sprintf("key %d", n)
			w.create(container, item{"id": "expires", "pk": key})
			w.create(container, item{"id": "stays", "pk": key, "ttl": -1})
		}
		w.split(container)
		left := func() int { return len(w.ask(container, "SELECT c.id FROM c", everywhere, nil)) }
		for end := time.Now().Add(20 * time.Second); left() > 10 && time.Now().Before(end); {
			time.Sleep(50 * time.Millisecond)
		}
		equal(w, left(), 10)
		refused[azcosmos.ItemResponse](w, 404)(container.ReadItem(ctx, text("key 3"), "expires", nil))
		refused[azcosmos.ItemResponse](w, 400)(container.CreateItem(ctx, text("a"), encode(item{"id": "x", "pk": "a", "ttl": 0}), nil))
	})
}

func TestS12UniqueKeysHoldAfterSplits(t *testing.T) {
	overBoth(t, func(w *world) {
		people := w.define(12000, func(p *azcosmos.ContainerProperties) {
			p.UniqueKeyPolicy = &azcosmos.UniqueKeyPolicy{UniqueKeys: []azcosmos.UniqueKey{{Paths: []string{"/mail"}}}}
		})
		for n := range 10 {
			w.create(people, item{"id": "1", "pk": fmt.Sprint(n), "mail": "x"})
		}
		for range 3 {
			for n := range 10 {
				taken := encode(item{"id": "2", "pk": fmt.Sprint(n), "mail": "x"})
				refused[azcosmos.ItemResponse](w, 409)(people.CreateItem(ctx, text(fmt.Sprint(n)), taken, nil))
			}
			w.split(people)
		}
		must(people.DeleteItem(ctx, text("3"), "1", nil))(w)
		w.create(people, item{"id": "2", "pk": "3", "mail": "x"})
	})
}

func TestAConflictResolutionPolicyIsStored(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.define(12000, func(p *azcosmos.ContainerProperties) {
			p.ConflictResolutionPolicy = &azcosmos.ConflictResolutionPolicy{
				Mode: azcosmos.ConflictResolutionModeLastWriteWins, ResolutionPath: "/version",
			}
		})
		read := must(container.Read(ctx, nil))(w).ContainerProperties.ConflictResolutionPolicy
		equal(w, read.Mode, azcosmos.ConflictResolutionModeLastWriteWins)
		equal(w, read.ResolutionPath, "/version")
	})
}

// The SDK refreshes its ranges on 410 and continues with the child partitions.
func TestTheChangeFeedContinuesAfterASplit(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(manual(400), "/pk")
		for n := range 20 {
			w.create(container, item{"id": "x", "pk": fmt.Sprint(n), "n": n})
		}
		whole := must(container.ReadFeedRanges(ctx, nil))(w)[0]
		options := azcosmos.ChangeFeedOptions{FeedRange: &whole, MaxItemCount: 5}
		seen := []int{}
		page := must(container.ReadChangeFeed(ctx, &options))(w)
		for _, bytes := range page.Items {
			seen = append(seen, int(decode(w, bytes)["n"].(float64)))
		}
		w.split(container)
		for n := 20; n < 30; n++ {
			w.create(container, item{"id": "x", "pk": fmt.Sprint(n), "n": n})
		}
		rest, token := readAllRanges(w, container, azcosmos.ChangeFeedOptions{Continuation: &page.ContinuationToken, MaxItemCount: 5})
		seen = append(seen, rest...)
		sort.Ints(seen)
		expected := []int{}
		for n := range 30 {
			expected = append(expected, n)
		}
		equal(w, fmt.Sprint(seen), fmt.Sprint(expected))

		w.create(container, item{"id": "y", "pk": "3", "n": 100})
		later, _ := readAllRanges(w, container, azcosmos.ChangeFeedOptions{Continuation: &token})
		equal(w, fmt.Sprint(later), "[100]")
	})
}

// readAllRanges reads a change feed until none of its ranges has more changes.
func readAllRanges(w *world, c *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([]int, string) {
	w.Helper()
	numbers, token := []int{}, ""
	for empty := 0; empty < 4; {
		page := must(c.ReadChangeFeed(ctx, &options))(w)
		token = page.ContinuationToken
		options.Continuation = &token
		empty++
		for _, bytes := range page.Items {
			numbers, empty = append(numbers, int(decode(w, bytes)["n"].(float64))), 0
		}
	}
	return numbers, token
}

// S130: a session token makes a write visible to another client, also after a split; a weaker level is accepted, a
// stronger one is 400.
func TestS130SessionsAndLevels(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(manual(12000), "/pk")
		other := must(w.connect(w.key()).NewContainer(w.database.ID(), container.ID()))(w)
		for n := range 9 {
			if n%3 == 2 {
				w.split(container)
			}
			key := fmt.Sprint(n)
			created := must(container.CreateItem(ctx, text(key), encode(item{"id": "x", "pk": key, "n": n}), nil))(w)
			options := &azcosmos.ItemOptions{SessionToken: created.SessionToken}
			seen := decode(w, must(other.ReadItem(ctx, text(key), "x", options))(w).Value)
			equal(w, int(seen["n"].(float64)), n)
		}
		for _, level := range []azcosmos.ConsistencyLevel{azcosmos.ConsistencyLevelSession, azcosmos.ConsistencyLevelEventual} {
			must(container.ReadItem(ctx, text("3"), "x", &azcosmos.ItemOptions{ConsistencyLevel: level.ToPtr()}))(w)
		}
		strong := &azcosmos.ItemOptions{ConsistencyLevel: azcosmos.ConsistencyLevelStrong.ToPtr()}
		refused[azcosmos.ItemResponse](w, 400)(container.ReadItem(ctx, text("3"), "x", strong))
	})
}
