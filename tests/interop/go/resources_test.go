package interop

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

func TestAWrongKeyIs401(t *testing.T) {
	overBoth(t, func(w *world) {
		unauthorized := w.connect(base64.StdEncoding.EncodeToString([]byte("not the key of this account")))
		database := must(unauthorized.NewDatabase(w.database.ID()))(w)
		refused[azcosmos.DatabaseResponse](w, 401)(database.Read(ctx, nil))
	})
}

func TestCreateReadDeleteDatabase(t *testing.T) {
	overBoth(t, func(w *world) {
		name := unique("database ü😀")
		created := must(w.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil))(w)
		database := must(w.client.NewDatabase(name))(w)
		equal(w, must(database.Read(ctx, nil))(w).DatabaseProperties.ResourceID, created.DatabaseProperties.ResourceID)
		refused[azcosmos.DatabaseResponse](w, 409)(w.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: name}, nil))
		must(database.Delete(ctx, nil))(w)
		refused[azcosmos.DatabaseResponse](w, 404)(database.Read(ctx, nil))
	})
}

func TestADatabaseIsFoundByID(t *testing.T) {
	overBoth(t, func(w *world) {
		var found []string
		pager := w.client.NewQueryDatabasesPager("SELECT * FROM root r WHERE r.id=@id", &azcosmos.QueryDatabasesOptions{
			QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: w.database.ID()}},
		})
		for pager.More() {
			for _, database := range must(pager.NextPage(ctx))(w).Databases {
				found = append(found, database.ID)
			}
		}
		if !slices.Equal(found, []string{w.database.ID()}) {
			w.Errorf("found %v", found)
		}
	})
}

// S3: the partition key is stored with the container.
func TestS3TheContainerStoresItsPartitionKey(t *testing.T) {
	overBoth(t, func(w *world) {
		for _, paths := range [][]string{{"/deviceId"}, {"/a", "/b"}, {"/a", "/b", "/c"}} {
			read := must(w.make(nil, paths...).Read(ctx, nil))(w).ContainerProperties
			if !slices.Equal(read.PartitionKeyDefinition.Paths, paths) {
				w.Errorf("stored %v of %v", read.PartitionKeyDefinition.Paths, paths)
			}
			equal(w, read.PartitionKeyDefinition.Version, 2)
		}
	})
}

func TestCreateReplaceDeleteContainer(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		properties := must(container.Read(ctx, nil))(w).ContainerProperties
		refused[azcosmos.ContainerResponse](w, 409)(w.database.CreateContainer(ctx, *properties, nil))

		properties.IndexingPolicy.ExcludedPaths = append(properties.IndexingPolicy.ExcludedPaths, azcosmos.ExcludedPath{Path: "/big/*"})
		replaced := must(container.Replace(ctx, *properties, nil))(w).ContainerProperties
		equal(w, len(replaced.IndexingPolicy.ExcludedPaths), 2)
		equal(w, replaced.ResourceID, properties.ResourceID)

		must(container.Delete(ctx, nil))(w)
		refused[azcosmos.ContainerResponse](w, 404)(container.Read(ctx, nil))
	})
}

// S15: the partition key cannot be changed in place.
func TestS15ThePartitionKeyCannotBeChanged(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(nil, "/pk")
		properties := must(container.Read(ctx, nil))(w).ContainerProperties
		properties.PartitionKeyDefinition.Paths = []string{"/other"}
		refused[azcosmos.ContainerResponse](w, 400)(container.Replace(ctx, *properties, nil))
	})
}

// S60, S83: throughput is provisioned at creation, at least 400, and can be replaced.
func TestS60S83Throughput(t *testing.T) {
	overBoth(t, func(w *world) {
		container := w.make(manual(400), "/pk")
		provisioned := func() int32 {
			value, _ := must(container.ReadThroughput(ctx, nil))(w).ThroughputProperties.ManualThroughput()
			return value
		}
		equal(w, provisioned(), 400)
		must(container.ReplaceThroughput(ctx, *manual(700), nil))(w)
		equal(w, provisioned(), 700)
		refused[*azcosmos.ContainerClient](w, 400)(w.tryMake(manual(300), "/pk"))
	})
}

func TestAutoscale(t *testing.T) {
	overBoth(t, func(w *world) {
		throughput := azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(5000, 10)
		container := w.make(&throughput, "/pk")
		read := must(container.ReadThroughput(ctx, nil))(w).ThroughputProperties
		maximum, _ := read.AutoscaleMaxThroughput()
		increment, _ := read.AutoscaleIncrement()
		equal(w, maximum, 5000)
		equal(w, increment, 10)
	})
}

// S44, S70: a new container has one range per 6,000 RU/s.
func TestS44S70Ranges(t *testing.T) {
	overBoth(t, func(w *world) {
		for throughput, count := range map[int32]int{400: 1, 6000: 1, 11000: 2, 20000: 4, 30000: 5} {
			ranges := must(w.make(manual(throughput), "/deviceId").ReadFeedRanges(ctx, nil))(w)
			equal(w, len(ranges), count)
			equal(w, ranges[0].MinInclusive, "")
			equal(w, ranges[len(ranges)-1].MaxExclusive, "FF")
		}
	})
}
