using System.Linq.Expressions;
using Microsoft.Azure.Cosmos;
using Microsoft.Azure.Cosmos.Linq;
using Newtonsoft.Json;

namespace Pleiad.Interop;

/// <summary>LINQ over five partitions: the SDK writes the query, and LINQ to Objects computes the expected rows.</summary>
static class LinqTests
{
    [Test]
    public static async Task Filters()
    {
        var kinds = new[] { "humidity", "pressure" };
        var since = new DateTime(2026, 1, 10, 0, 0, 0, DateTimeKind.Utc);
        await Filter(item => item.N > 40 && item.Metric < 15);
        await Filter(item => item.Kind == "humidity" || item.Floor == 2);
        await Filter(item => !item.On && item.Place.City != "city 3");
        await Filter(item => kinds.Contains(item.Kind));
        await Filter(item => item.Tags.Contains("blue"));
        await Filter(item => item.Parts.Any(part => part.Grams > 30));
        await Filter(item => item.Tags.Count() > 1);
        await Filter(item => item.At >= since);
        await Filter(item => item.N % 3 == 1 && item.N + 1 > 10 && -item.N < 5);
        await Filter(item => item.Kind.StartsWith("temp") || item.Kind.EndsWith("ure"));
        await Filter(item => item.Kind.Contains("idit") && item.Id.Substring(2, 2) != "07");
        await Filter(item => item.Kind.ToUpper() == "PRESSURE" && item.Kind.IndexOf("s") == 3);
        await Filter(item => item.Kind.Replace("p", "q").StartsWith("q") == false && item.Kind.Trim() != "pressure");
        await Filter(item => Math.Abs(item.Metric - 10) < 3 && Math.Floor(item.Metric) > 7);
        await Filter(item => Math.Pow(item.Floor, 2) > 3 && Math.Round(item.Metric) < 20);
        await Filter(item => (item.On ? item.N : item.Floor) > 3);
        await Filter(item => item.Maybe > 50);
        await Filter(item => item.Device == Readings.OneKey);
    }

    [Test]
    public static async Task FiltersOnMissingValues()
    {
        await Same(items => items.Where(item => item.Maybe.IsDefined()).Select(item => item.N),
            Readings.All.Where(item => item.Maybe != null).Select(item => item.N));
        await Same(items => items.Where(item => !item.Maybe.IsDefined()).Select(item => item.N),
            Readings.All.Where(item => item.Maybe == null).Select(item => item.N));
        await Same(items => items.Where(item => (item.Maybe ?? -1) < 10).Select(item => item.N),
            Readings.All.Where(item => (item.Maybe ?? -1) < 10).Select(item => item.N));
    }

    [Test]
    public static async Task Projections()
    {
        await Map(item => item.Metric);
        await Map(item => item.Place);
        await Map(item => item.Place.City);
        await Map(item => item.Tags);
        await Map(item => new { item.Id, Doubled = item.N * 2, item.Place.X });
        await Map(item => new { Inner = new { item.Kind }, First = item.Floor == 0 });
        await Map(item => new[] { item.N, item.Floor });
        await Map(item => item.Parts.Where(part => part.Grams > 10).Select(part => part.Name));
        await Map(item => item.Tags.Count(tag => tag != "far"));
        await Map(item => item.Kind + "/" + item.Id);
    }

    [Test]
    public static async Task Joins()
    {
        await Both(items => items.SelectMany(item => item.Tags));
        await Both(items => items.SelectMany(item => item.Tags.Select(tag => new { item.Id, tag })));
        await Both(items => items.SelectMany(item => item.Parts.Where(part => part.Grams > 20).Select(part => part.Name)));
        await Both(items => items.SelectMany(item => item.Tags.Where(tag => tag == "new")).Distinct());
    }

    [Test]
    public static async Task Orders()
    {
        await Ordered(items => items.OrderBy(item => item.N).Select(item => item.Id));
        await Ordered(items => items.OrderByDescending(item => item.N).Select(item => item.Id));
        await Ordered(items => items.Where(item => item.On).OrderBy(item => item.N).Select(item => item.Id));
        await Ordered(items => items.OrderBy(item => item.Floor).ThenBy(item => item.N).Select(item => item.Id));
        await Ordered(items => items.OrderByDescending(item => item.Floor).ThenByDescending(item => item.N).Select(item => item.Id));
        await Ordered(items => items.OrderBy(item => item.N).Take(12).Select(item => item.Id));
        await Ordered(items => items.OrderBy(item => item.N).Skip(7).Take(30).Select(item => item.Id));
        await Ordered(items => items.OrderBy(item => item.At).Skip(100).Take(100).Select(item => item.Id));
        await Ordered(items => items.Select(item => item.Metric).Distinct().OrderBy(metric => metric));
    }

    [Test]
    public static async Task Aggregates()
    {
        var items = (await Readings.Container()).GetItemLinqQueryable<Reading>();
        var all = Readings.All;
        Check.Equal(all.Count, (await items.CountAsync()).Resource, "Count");
        Check.Equal(all.Count(item => item.On), (await items.Where(item => item.On).CountAsync()).Resource, "filtered Count");
        Check.Equal(all.Sum(item => item.N), (await items.Select(item => item.N).SumAsync()).Resource, "Sum");
        Check.Equal(all.Min(item => item.Metric), (await items.Select(item => item.Metric).MinAsync()).Resource, "Min");
        Check.Equal(all.Max(item => item.Kind), (await items.Select(item => item.Kind).MaxAsync()).Resource, "Max");
        var average = (await items.Select(item => item.Metric).AverageAsync()).Resource;
        Check.True(Math.Abs(all.Average(item => item.Metric) - average) < 1e-9, $"Average {average}");
        Check.Equal(0, (await items.Where(item => item.N < 0).CountAsync()).Resource, "Count of nothing");
    }

    [Test]
    public static async Task DistinctRows()
    {
        await Both(items => items.Select(item => item.Kind).Distinct());
        await Both(items => items.Select(item => new { item.Kind, item.Floor }).Distinct());
        await Both(items => items.Select(item => item.Place.City).Distinct());
    }

#if COSMOS_3_64
    [Test]
    public static async Task Groups()
    {
        await Both(items => items.GroupBy(item => item.Kind, (kind, group) => new { kind, Many = group.Count() }));
        await Both(items => items.GroupBy(item => item.Floor, (floor, group) => new { floor, Highest = group.Max(item => item.N) }));
    }

    [Test]
    public static async Task OneRow()
    {
        await Both(items => items.Where(item => item.Id == "0017").Take(1));
    }
#endif

    [Test]
    public static async Task QueriesWithinOneKey()
    {
        var options = new QueryRequestOptions { PartitionKey = new PartitionKey(Readings.OneKey) };
        var items = (await Readings.Container()).GetItemLinqQueryable<Reading>(requestOptions: options);
        var expected = Readings.All.Where(item => item.Device == Readings.OneKey).ToList();
        Check.Sequence(expected.OrderByDescending(item => item.N).Select(item => item.Id),
            await Read(items.OrderByDescending(item => item.N).Select(item => item.Id)), "one key");
        Check.Equal(expected.Count, (await items.CountAsync()).Resource, "Count of one key");
    }

    static Task Filter(Expression<Func<Reading, bool>> filter) => Both(items => items.Where(filter).Select(item => item.Id));

    static Task Map<T>(Expression<Func<Reading, T>> projection) => Both(items => items.Select(projection));

    /// <summary>The rows of the server and of LINQ to Objects, in any order.</summary>
    static async Task Both<T>(Func<IQueryable<Reading>, IQueryable<T>> query) =>
        await Same(query, query(Readings.All.AsQueryable()));

    static async Task Same<T>(Func<IQueryable<Reading>, IQueryable<T>> query, IEnumerable<T> expected)
    {
        var (rows, text) = await Ask(query);
        Check.Bag(expected.Select(row => Serialized(row)), rows.Select(row => Serialized(row)), text);
    }

    /// <summary>The rows of the server and of LINQ to Objects, in the same order.</summary>
    static async Task Ordered<T>(Func<IQueryable<Reading>, IQueryable<T>> query)
    {
        var (rows, text) = await Ask(query);
        Check.Sequence(query(Readings.All.AsQueryable()).ToList(), rows, text);
    }

    static async Task<(List<T>, string)> Ask<T>(Func<IQueryable<Reading>, IQueryable<T>> query)
    {
        var questions = query((await Readings.Container()).GetItemLinqQueryable<Reading>());
        var text = questions.ToQueryDefinition().QueryText;
        try
        {
            return (await Read(questions), text);
        }
        catch (CosmosException error)
        {
            throw new FailedException($"{text}\n{error.Message}");
        }
    }

    static async Task<List<T>> Read<T>(IQueryable<T> query)
    {
        var rows = new List<T>();
        using var iterator = query.ToFeedIterator();
        while (iterator.HasMoreResults) rows.AddRange(await iterator.ReadNextAsync());
        return rows;
    }

    static string Serialized(object row) => JsonConvert.SerializeObject(row);
}
