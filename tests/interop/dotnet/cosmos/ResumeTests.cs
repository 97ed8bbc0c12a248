using Microsoft.Azure.Cosmos;
using Newtonsoft.Json.Linq;

namespace Pleiad.Interop;

/// <summary>
/// S106: every page of a query is read by a new client that has nothing but the continuation token of the page before,
/// and the pages together are the answer of one iterator. The versions of the SDK resume differently: 3.37 rewrites the
/// query with a filter, 3.64 sends a `resumeFilter` beside it.
/// </summary>
static class ResumeTests
{
    static readonly string[] Unsorted =
    [
        "SELECT VALUE c.id FROM c",
        "SELECT * FROM c WHERE c.metric > 10",
        "SELECT VALUE t FROM c JOIN t IN c.tags",
        "SELECT c.id, ARRAY(SELECT VALUE p.name FROM p IN c.parts) AS parts FROM c WHERE c.floor IN (1, 3)",
        "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 60",
        "SELECT TOP 50 VALUE c.id FROM c",
    ];

    static readonly string[] Sorted =
    [
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.metric DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.kind",
        "SELECT VALUE c.id FROM c ORDER BY c.on DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.maybe",
        "SELECT VALUE c.id FROM c ORDER BY c._ts",
        "SELECT VALUE c.id FROM c WHERE c.metric > 5 ORDER BY c.place.city",
        "SELECT VALUE c.id FROM c ORDER BY c.kind, c.metric DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.floor DESC, c.n DESC",
        "SELECT TOP 40 VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 5 LIMIT 40",
        "SELECT VALUE c.id FROM c ORDER BY c.floor OFFSET 11 LIMIT 70",
        "SELECT VALUE s.id FROM (SELECT * FROM c WHERE c.n > 20) s ORDER BY s.n OFFSET 3 LIMIT 30",
        "SELECT DISTINCT VALUE c.metric FROM c ORDER BY c.metric",
    ];

    /// <summary>
    /// Several rows of one item. In 3.64 a token counts the rows of the item in the last page only, so that an item that
    /// reaches over three pages is returned again and again; the older version has the server's token.
    /// </summary>
#if COSMOS_3_64
    static readonly string[] SortedRowsOfItems = [];
#else
    static readonly string[] SortedRowsOfItems = ["SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.floor"];
#endif

    /// <summary>Sort keys of every type: only the newer SDK sends arrays and objects so that a server can compare them.</summary>
    static readonly string[] SortedByMixedTypes =
    [
        "SELECT VALUE c.id FROM c ORDER BY c.mixed",
        "SELECT VALUE c.id FROM c ORDER BY c.mixed DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.mixed, c.n DESC",
    ];

    [Test]
    public static async Task S106_UnsortedQueriesResume()
    {
        foreach (var text in Unsorted) await ResumesAtEveryPage(text, 7, 23);
    }

    [Test]
    public static async Task S106_SortedQueriesResume()
    {
        foreach (var text in Sorted.Concat(SortedRowsOfItems)) await ResumesAtEveryPage(text, 7, 23);
    }

    [Test]
    public static async Task S106_PagesOfOneRowResume()
    {
        await ResumesAtEveryPage("SELECT TOP 25 VALUE c.id FROM c ORDER BY c.kind, c.metric DESC", 1);
        await ResumesAtEveryPage("SELECT TOP 25 VALUE c.id FROM c ORDER BY c.on", 1);
    }

    [Test]
    public static async Task S106_OrderByMixedTypesResumes()
    {
#if COSMOS_3_64
        foreach (var text in SortedByMixedTypes) await ResumesAtEveryPage(text, 7, 23);
#endif
        // Both versions return every item, in the order of the types.
        foreach (var text in SortedByMixedTypes)
        {
            var rows = await World.Rows(await Readings.Container(), text);
            Check.Bag(Readings.All.Select(item => $"\"{item.Id}\""), rows, text);
        }
    }

    [Test]
    public static async Task S106_QueriesWithinOneKeyResume()
    {
        string[] alsoGrouped =
        [
            "SELECT c.floor, COUNT(1) AS many FROM c GROUP BY c.floor",
            "SELECT DISTINCT VALUE c.kind FROM c",
        ];
        var options = new QueryRequestOptions { PartitionKey = new PartitionKey(Readings.OneKey), MaxItemCount = 2 };
        var container = await Readings.Container();
        foreach (var text in Unsorted.Concat(Sorted).Concat(SortedByMixedTypes))
        {
            var whole = await World.Rows(container, text, new QueryRequestOptions { PartitionKey = options.PartitionKey });
            Check.Sequence(whole, await PageByPage(container, text, options), text);
        }
        foreach (var text in alsoGrouped)
            Check.True((await World.Rows(container, text, options)).Count > 0, text);
    }

    [Test]
    public static async Task S106_QueriesWithinAFeedRangeResume()
    {
        var container = await Readings.Container();
        foreach (var range in await container.GetFeedRangesAsync())
            foreach (var text in Sorted.Take(3).Append(Unsorted[0]))
            {
                var whole = await PageByPage(range, container, text, -1);
                Check.Sequence(whole, await PageByPage(range, container, text, 5), $"{text} in {range}");
            }
    }

    [Test]
    public static async Task S106_QueriesResumeAfterSplits()
    {
        foreach (var text in Unsorted.Take(3).Concat(Sorted.Where(text => IsUnique(text) || !text.Contains(" LIMIT "))))
        {
            var container = await Readings.MakeContainer(2);
            var whole = await World.Rows(container, text);
            var options = new QueryRequestOptions { MaxItemCount = 9 };
            var resumed = await PageByPage(container, text, options, async page =>
            {
                if (page is 2 or 4) await Management.Split(container.Database.Id, container.Id);
            });
            if (IsUnique(text)) Check.Sequence(whole, resumed, text);
            else if (!text.Contains("ORDER BY")) Check.Bag(whole, resumed, text);
            // The SDK's token has one position for all partitions. After a split it begins again with the rows that have
            // the sort key of that position, in the child to the right: it may return some of them twice.
            else Check.Bag(whole.Distinct(), resumed.Distinct(), text);
            await container.DeleteContainerAsync();
        }
    }

    /// <summary>Sorted by values that no two rows share.</summary>
    static bool IsUnique(string text) =>
        text.Contains("ORDER BY c.n") || text.Contains("ORDER BY s.n") || text.Contains("c.n DESC") || text.StartsWith("SELECT DISTINCT");

    /// <summary>Aggregates and groups have no tokens across partitions; one iterator reads all of their pages.</summary>
    [Test]
    public static async Task AggregatesAndGroups()
    {
        var container = await Readings.Container();
        var all = Readings.All;
        var aggregates = new Dictionary<string, double>
        {
            ["COUNT(1)"] = all.Count,
            ["SUM(c.n)"] = all.Sum(item => item.N),
            ["AVG(c.metric)"] = all.Average(item => item.Metric),
            ["MIN(c.metric)"] = all.Min(item => item.Metric),
            ["MAX(c.n)"] = all.Max(item => item.N),
        };
        foreach (var (call, expected) in aggregates)
        {
            var rows = await World.Rows(container, $"SELECT VALUE {call} FROM c");
            Check.Equal(1, rows.Count, call);
            Check.True(Math.Abs(expected - double.Parse(rows[0])) < 1e-9, $"{call}: expected {expected}, got {rows[0]}");
        }
        foreach (var size in new[] { 1, 2, -1 })
        {
            var options = new QueryRequestOptions { MaxItemCount = size };
            var groups = await World.Rows(container, "SELECT c.kind, COUNT(1) AS many, MAX(c.n) AS highest FROM c GROUP BY c.kind", options);
            var expected = all.GroupBy(item => item.Kind)
                .Select(group => $"{{\"kind\":\"{group.Key}\",\"many\":{group.Count()},\"highest\":{group.Max(item => item.N)}}}");
            Check.Bag(expected, groups, $"groups, pages of {size}");
            var distinct = await World.Rows(container, "SELECT DISTINCT VALUE c.place.city FROM c", options);
            Check.Bag(all.Select(item => $"\"{item.Place.City}\"").Distinct(), distinct, $"distinct, pages of {size}");
        }
    }

    static async Task ResumesAtEveryPage(string text, params int[] sizes)
    {
        var container = await Readings.Container();
        var whole = await World.Rows(container, text);
        Check.True(whole.Count > 0, $"{text}: no rows");
        foreach (var size in sizes)
        {
            var options = new QueryRequestOptions { MaxItemCount = size };
            Check.Sequence(whole, await PageByPage(container, text, options), $"{text}, pages of {size}");
        }
    }

    static async Task<List<string>> PageByPage(Container container, string text, QueryRequestOptions options, Func<int, Task> after = null)
    {
        var (rows, token, page) = (new List<string>(), (string)null, 0);
        do
        {
            using var client = World.Connect();
            var reader = client.GetContainer(container.Database.Id, container.Id);
            var response = await reader.GetItemQueryIterator<JToken>(text, token, options).ReadNextAsync();
            rows.AddRange(response.Select(World.Text));
            token = response.ContinuationToken;
            Check.True(++page < 1000, $"{text}: the pages do not end");
            if (after != null) await after(page);
        }
        while (token != null);
        return rows;
    }

    static async Task<List<string>> PageByPage(FeedRange range, Container container, string text, int size)
    {
        var (rows, token, page) = (new List<string>(), (string)null, 0);
        do
        {
            using var client = World.Connect();
            var reader = client.GetContainer(container.Database.Id, container.Id);
            var options = new QueryRequestOptions { MaxItemCount = size };
            var pages = reader.GetItemQueryIterator<JToken>(range, new QueryDefinition(text), token, options);
            var response = await pages.ReadNextAsync();
            rows.AddRange(response.Select(World.Text));
            token = response.ContinuationToken;
            Check.True(++page < 1000, $"{text}: the pages do not end");
        }
        while (token != null);
        return rows;
    }
}
