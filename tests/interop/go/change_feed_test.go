package interop

import (
	"fmt"
	"sort"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// changes reads a change feed until there are no more changes; returns the items' numbers, sorted, and the
// continuation.
func changes(w *world, c *azcosmos.ContainerClient, options azcosmos.ChangeFeedOptions) ([]int, string) {
	w.Helper()
	numbers := []int{}
	for {
		page := must(c.ReadChangeFeed(ctx, &options))(w)
		options.Continuation = &page.ContinuationToken
		if page.Count == 0 {
			sort.Ints(numbers)
			return numbers, page.ContinuationToken
		}
		for _, bytes := range page.Items {
			numbers = append(numbers, int(decode(w, bytes)["n"].(float64)))
		}
	}
}

func TestChangeFeedOfEveryFeedRange(t *testing.T) {
	overBoth(t, func(w *world) {
		for _, throughput := range []int32{400, 30000} {
			container := w.make(manual(throughput), "/pk")
			for n := range 10 {
				key := fmt.Sprintf("key %d", n)
				body := encode(item{"id": key, "pk": key, "n": n})
				must(container.CreateItem(ctx, text(key), body, nil))(w)
			}
			must(container.ReplaceItem(ctx, text("key 3"), "key 3", encode(item{"id": "key 3", "pk": "key 3", "n": 33}), nil))(w)
			must(container.DeleteItem(ctx, text("key 4"), "key 4", nil))(w)

			all := []int{}
			tokens := []string{}
			for _, one := range must(container.ReadFeedRanges(ctx, nil))(w) {
				found, token := changes(w, container, azcosmos.ChangeFeedOptions{FeedRange: &one, MaxItemCount: 2})
				all, tokens = append(all, found...), append(tokens, token)
			}
			sort.Ints(all)
			equal(w, fmt.Sprint(all), "[0 1 2 5 6 7 8 9 33]")

			must(container.UpsertItem(ctx, text("key 7"), encode(item{"id": "key 7", "pk": "key 7", "n": 77}), nil))(w)
			later := []int{}
			for _, token := range tokens {
				found, _ := changes(w, container, azcosmos.ChangeFeedOptions{Continuation: &token})
				later = append(later, found...)
			}
			equal(w, fmt.Sprint(later), "[77]")
		}
	})
}

func TestChangeFeedFromATime(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		must(container.CreateItem(ctx, text("a"), encode(item{"id": "1", "pk": "a", "n": 1}), nil))(w)
		whole := must(container.ReadFeedRanges(ctx, nil))(w)[0]
		ago, ahead := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		found, _ := changes(w, container, azcosmos.ChangeFeedOptions{FeedRange: &whole, StartFrom: &ago})
		equal(w, fmt.Sprint(found), "[1]")
		found, _ = changes(w, container, azcosmos.ChangeFeedOptions{FeedRange: &whole, StartFrom: &ahead})
		equal(w, fmt.Sprint(found), "[]")
	})
}
