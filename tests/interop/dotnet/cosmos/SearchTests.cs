#if COSMOS_3_64
using System.Collections.ObjectModel;
using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Pleiad.Interop;

/// <summary>
/// Full-text, vector and hybrid search: the SDK merges scores of five partitions by statistics of the whole container,
/// so that the rows are those of a container with one partition. Version 3.37 of the SDK has none of this.
/// </summary>
static class SearchTests
{
    static readonly string[] Words =
        ["mountain", "bicycle", "river", "harbour", "engine", "lantern", "orchard", "violin", "granite", "meadow"];

    /// <summary>Each text has a length of its own, so that no two scores are equal.</summary>
    static readonly List<JObject> Items = Enumerable.Range(0, 90).Select(n => new JObject
    {
        ["id"] = $"{n:D3}",
        ["pk"] = $"key {n % 17}",
        ["text"] = string.Join(' ', Enumerable.Range(0, 3 + n * 37 % 90).Select(step => Words[(n * n + step * step * (n % 7 + 1)) % Words.Length])),
        ["vector"] = new JArray(Math.Sin(n), Math.Cos(n * 3), n / 90.0),
    }).ToList();

    /// <summary>
    /// Components of RRF are ranked among the rows that the partitions return for them, so these queries ask for all rows,
    /// and filter out those that a component would not score.
    /// </summary>
    static readonly string[] Queries =
    [
        "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'mountain', 'river')",
        "SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.vector, [0.3, -0.2, 0.9])",
        "SELECT TOP 90 VALUE c.id FROM c WHERE FullTextContains(c.text, 'violin') ORDER BY RANK RRF(FullTextScore(c.text, 'violin'), VectorDistance(c.vector, [0.3, -0.2, 0.9]), [3, 1.7])",
        "SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, 'engine', 'granite') ORDER BY RANK RRF(FullTextScore(c.text, 'engine'), FullTextScore(c.text, 'granite'), [1, 1.3]) OFFSET 3 LIMIT 87",
    ];

    [Test]
    public static async Task SearchesOverSeveralPartitionsAreThoseOfOne()
    {
        var one = await MakeContainer(1);
        var five = await MakeContainer(5);
        foreach (var text in Queries)
        {
            var expected = await World.Rows(one, text);
            Check.True(expected.Count > 0, $"{text}: no rows");
            foreach (var size in new[] { 2, -1 })
            {
                var rows = await World.Rows(five, text, new QueryRequestOptions { MaxItemCount = size });
                Check.Sequence(expected, rows, $"{text}, pages of {size}");
            }
        }
        await Management.Split(five.Database.Id, five.Id);
        foreach (var text in Queries)
            Check.Sequence(await World.Rows(one, text), await World.Rows(World.ThroughNewClient(five), text), $"{text}, after a split");
    }

    [Test]
    public static async Task FullTextFilters()
    {
        var container = await MakeContainer(3);
        bool Has(JObject item, string word) => item["text"].ToString().Split(' ').Contains(word);
        var filters = new Dictionary<string, Func<JObject, bool>>
        {
            ["FullTextContains(c.text, 'violin')"] = item => Has(item, "violin"),
            ["FullTextContainsAll(c.text, 'violin', 'river')"] = item => Has(item, "violin") && Has(item, "river"),
            ["FullTextContainsAny(c.text, 'violin', 'river')"] = item => Has(item, "violin") || Has(item, "river"),
        };
        foreach (var (filter, expected) in filters)
            Check.Bag(Items.Where(expected).Select(item => $"\"{item["id"]}\""),
                await World.Rows(container, $"SELECT VALUE c.id FROM c WHERE {filter}"), filter);
    }

    static async Task<Container> MakeContainer(int partitions)
    {
        var properties = new ContainerProperties(Server.Unique("search"), "/pk")
        {
            FullTextPolicy = new FullTextPolicy
            {
                DefaultLanguage = "en-US",
                FullTextPaths = new Collection<FullTextPath> { new() { Path = "/text", Language = "en-US" } },
            },
            VectorEmbeddingPolicy = new VectorEmbeddingPolicy(new Collection<Embedding>
            {
                new() { Path = "/vector", DataType = VectorDataType.Float32, Dimensions = 3, DistanceFunction = DistanceFunction.Cosine },
            }),
        };
        properties.IndexingPolicy.FullTextIndexes.Add(new FullTextIndexPath { Path = "/text" });
        properties.IndexingPolicy.VectorIndexes.Add(new VectorIndexPath { Path = "/vector", Type = VectorIndexType.Flat });
        var container = await World.Make(properties, partitions);
        await World.Fill(container, Items);
        return container;
    }
}
#endif
